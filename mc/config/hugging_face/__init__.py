"""The shape of a transformer from a `config.json`, as Hugging Face Transformers writes it."""

from mc.config.hugging_face.importing import KEY as KEY
from mc.config.hugging_face.importing import MAXIMUM_BYTES as MAXIMUM_BYTES
from mc.config.hugging_face.importing import import_shape as import_shape
