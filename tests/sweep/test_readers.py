"""What other programs read from a sweep's folder, by the lines that `docs/how-to/read-results.md` shows."""

import re
from pathlib import Path

import duckdb
import pyarrow.compute as pc
import pytest

import mc
from mc.sweep import batch as batch_module
from tests.sweep.test_sweep_files import EXPERIMENT

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "read-results.md"
COLUMNS = ["plan.ranks", "step_time_p50_s", "step_time_p99_s"]
# In three parts, five cells, of which one has more ranks than the cluster.
BLOCK = """\
  samples: 0
  impossible: list
  list:
    - {plan.ranks: 16, plan.algorithm: ring}
    - {plan.ranks: 8, plan.algorithm: ring}
    - {plan.ranks: 513, plan.algorithm: ring}
    - {plan.ranks: 512, plan.algorithm: ring}
    - {plan.ranks: 2, plan.algorithm: ring}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where the page has its folder `sizes`; and the rows that went there."""
    path = tmp_path_factory.mktemp("readers")
    (path / "sweep.yaml").write_text(EXPERIMENT + BLOCK)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batch_module, "QUIET", 2)
        table = mc.run_sweep(mc.load_sweep(path / "sweep.yaml"), out=path / "sizes")
    assert table.column("status").to_pylist().count("ok") == 4
    assert len(list(path.glob("sizes/cells-*.parquet"))) == 3
    return path, table


def shown(title: str) -> str:
    (block,) = re.findall(rf"^## {title}\n.*?^```\w+\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    return block


def by_pandas() -> list[tuple]:
    names: dict = {}
    exec(shown("pandas"), names)
    kept = names["frame"][names["frame"].status == "ok"]
    assert [str(kept[name].dtype) for name in ("cell", *COLUMNS)] == ["int64", *["float64"] * 3]
    return list(kept[COLUMNS].itertuples(index=False, name=None))


def by_duckdb() -> list[tuple]:
    found = duckdb.sql(shown("DuckDB"))
    assert found.columns == COLUMNS
    assert found.types == ["DOUBLE"] * 3
    return found.fetchall()


def by_polars() -> list[tuple]:
    names: dict = {}
    exec(shown("Polars"), names)
    kept = names["cells"].select(COLUMNS).collect()
    assert [str(each) for each in kept.dtypes] == ["Float64"] * 3
    return kept.rows()


@pytest.mark.parametrize("read", [by_pandas, by_duckdb, by_polars])
def test_a_folder_is_read_without_us(folder, monkeypatch, read):
    path, table = folder
    monkeypatch.chdir(path)
    good = table.filter(pc.equal(table.column("status"), "ok"))
    rows = read()
    assert sorted(rows) == sorted(zip(*(good.column(name).to_pylist() for name in COLUMNS), strict=True))
    # A ring over ever more ranks takes ever longer.
    assert [row[0] for row in sorted(rows, key=lambda row: row[2])] == [2, 8, 16, 512]
