"""A small file of every format, made up: `name -> (name of the file, text)`. What the readers and the fuzzer are fed."""

import json

from tests.logs.dialects import DIALECTS, Point, write

_US = {
    "min_us": 9.0,
    "max_us": 30.0,
    "avg_us": 15.0,
    "p50_us": 12.0,
    "p95_us": 29.0,
    "p99_us": 30.0,
    "stdev_us": 8.0,
}
NCCL_JSON = {
    "version": 3,
    "args": ["/opt/nccl-tests/build/all_reduce_perf", "-b", "8"],
    "env": ["HOME=/home/somebody", "TOKEN=secret"],
    "nccl_version": 22807,
    "config": {
        "nthreads": 1,
        "ngpus": 1,
        "iterations": 3,
        "devices": [
            {"rank": rank, "hostname": host, "device": 0, "device_info": "NVIDIA H100"}
            for rank, host in enumerate(("n1", "n1", "n2", "n2"))
        ],
    },
    "results": [
        {
            "size": 1048576,
            "count": 262144,
            "type": "float",
            "redop": "sum",
            "root": "    -1",
            "out_of_place": {"time": 50.0, "alg_bw": 20.97152, "bus_bw": 31.45728, "nwrong": 0.0},
            "out_of_place_per_iter": {
                **_US,
                "times_us": [40.0, 50.0, 60.0],
                "per_process_max_times_us": [[40.0, 50.0, 41.0], [30.0, 31.0, 60.0]],
            },
            "in_place": {"cpu_time": 40.0, "alg_bw": 26.2144, "bus_bw": 39.3216, "nwrong": None},
            "actual_iterations": 3,
            "experiment_name": "all_reduce_perf",
        },
        {
            "size": 8,
            "count": 2,
            "type": "float",
            "out_of_place": None,
            "in_place": {"time": "nan", "alg_bw": "nan", "bus_bw": "nan", "nwrong": None},
            "experiment_name": "all_reduce_perf",
        },
    ],
    "average_bus_bandwidth": {"bandwidth": 35.0, "okay": "unchecked"},
}
RCCL = [
    {
        "numCycle": 0,
        "name": "AllReduce",
        "nodes": 2,
        "ranks": 4,
        "ranksPerNode": 2,
        "gpusPerRank": 2,
        "size": size,
        "type": "float",
        "redop": "sum",
        "inPlace": place,
        "time": time,
        "algBw": round(size / time / 1e3, 4),
        "busBw": round(1.75 * size / time / 1e3, 4),
        "wrong": "N/A",
    }
    for size, place, time in ((1048576, 0, 60.5), (1048576, 1, 61.25), (4194304, 0, 120.0))
]


def inspected(rank: int, number: int, time: int, call: str = "AllGather", size: int = 262144) -> dict:
    """A line of the inspector of four ranks on two nodes."""
    whole = size * 4 if call == "AllGather" else size
    return {
        "header": {"id": "0xabc", "comm_name": "unknown", "rank": rank, "n_ranks": 4, "nnodes": 2},
        "metadata": {"inspector_output_format_version": "v4.2", "hostname": "n1", "pid": 7},
        "coll_perf": {
            "coll": call,
            "coll_algo": "RING",
            "coll_proto": "SIMPLE",
            "coll_sn": number,
            "coll_msg_size_bytes": size,
            "coll_exec_time_us": time,
            "coll_timing_source": "kernel_gpu",
            "coll_algobw_gbs": whole / max(time, 1) / 1e3,
            "coll_busbw_gbs": 0.75 * whole / max(time, 1) / 1e3,
        },
    }


_DROPPED = {
    "header": {"rank": 0},
    "dump_stats": {"coll_dropped_since_last_dump": 5, "p2p_dropped_since_last_dump": 0},
}
_INSPECTOR = [
    _DROPPED,
    inspected(0, 1, 100),
    inspected(1, 1, 130),
    inspected(0, 2, 90, "AllReduce"),
    inspected(0, 3, 0),
]

OSU = """\
# OSU MPI-CUDA Allgather Latency Test v7.4
# Datatype: MPI_CHAR.
# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations    P50 Tail Lat(us)    P99 Tail Lat(us)
1                      10.25              9.50             11.00        1000               10.10               10.90
1024                   20.50             19.50             21.75        1000               20.40               21.70

# OSU MPI Multiple Bandwidth / Message Rate Test v7.4
# [ pairs: 2 ] [ window size: 64 ]
# Size                  MB/s        Messages/s
1024                 2048.00        2000000.00
1048576             20000.00          19073.49

# OSU MPI Latency Test v7.4
# Size          Latency (us)
0                       2.09
8                       2.19
"""
IMB = """\
#----------------------------------------------------------------
#    Intel(R) MPI Benchmarks 2021.7, MPI-1 part
# Benchmarking PingPong
# #processes = 2
       #bytes #repetitions      t[usec]   Mbytes/sec
            0         1000         1.66         0.00
      1048576           40       100.00     10485.76

# Benchmarking Alltoall
# #processes = 4
# ( 4 additional processes waiting in MPI_Barrier)
       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]
            0         1000         0.03         0.05         0.04
         1024         1000        10.00        14.00        12.00

# Benchmarking Barrier
# #processes = 4
 #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]
         1000         3.03         3.05         3.04

# All processes entering MPI_Finalize
"""
PERFTEST = """\
---------------------------------------------------------------------------------------
                    RDMA_Write BW Test
 Dual-port       : OFF		Device         : mlx5_0
---------------------------------------------------------------------------------------
 #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]
Conflicting CPU frequency values detected: 3393.69 != 1500.00. CPU Frequency is not max.
 65536      5000             11044.38            11043.78		   0.176700
---------------------------------------------------------------------------------------
                    RDMA_Read Latency Test
 #bytes #iterations    t_min[usec] t_max[usec] t_typical[usec] t_avg[usec] t_stdev[usec] 99% percentile[usec] 99.9% percentile[usec]
 2       1000          1.79           5.41         1.87   	       1.88        	0.18   		2.03    	5.41
                    RDMA_Write Bidirectional BW Test
 #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]
 65536      5000             400.00            392.00		   0.747681
"""
P2P = """\
[P2P (Peer-to-Peer) GPU Bandwidth Latency Test]
Device: 0, NVIDIA H100, pciBusID: 3d, pciDeviceID: 0, pciDomainID:0
Device: 1, NVIDIA H100, pciBusID: 3e, pciDeviceID: 0, pciDomainID:0
Device=0 CAN Access Peer Device=1
P2P Connectivity Matrix
     D\\D     0     1
     0	     1     1
     1	     1     1
Unidirectional P2P=Enabled Bandwidth (P2P Writes) Matrix (GB/s)
   D\\D     0      1
     0 2500.00 400.00
     1 320.00 2500.00
Bidirectional P2P=Enabled Bandwidth Matrix (GB/s)
   D\\D     0      1
     0 2500.00 640.00
     1 640.00 2500.00
P2P=Enabled Latency (P2P Writes) Matrix (us)
   GPU     0      1
     0   1.83   2.50
     1   2.25   1.81

   CPU     0      1
     0   2.57   2.00
     1   2.00   2.43

NOTE: The CUDA Samples are not meant for performance measurements.
"""
_INFO = "n1:10:11 [0] NCCL INFO "
TUNING_NEW = "".join(
    f"{_INFO}{line}\n"
    for line in (
        "comm 0x0 rank 0 nRanks 16 nNodes 2 localRanks 8 localRank 0 MNNVL 0",
        "  Algorithm   |      Tree      |      Ring      |   CollNetDirect",
        "  Protocol    |   LL |  LL128 | Simple |   LL |  LL128 | Simple |   LL |  LL128 | Simple",
        " Max NThreads |  512 |    640 |    512 |  512 |    640 |    512 |    0 |      0 |    640",
        "    AllReduce |     8.0/  61.1 |    16.5/ 180.6 |    16.4/ 232.2 |     7.8/ 141.0 |    17.8/ 331.2 |    15.2/ 360.0"
        " |     0.8/   0.0 |     0.8/   0.0 |    39.2/   0.0",
        "  Algorithm   |      NVLS      |    NVLSTree    |       PAT",
        "    AllReduce |     0.0/   0.0 |     0.0/   0.0 |    25.0/ 102.0 |     0.0/   0.0 |     0.0/   0.0 |    25.0/   0.0"
        " |     0.0/   0.0 |     0.0/   0.0 |     0.0/   0.0",
    )
)
TUNER = """\
# made by hand
collective_type,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks,numPipeOps,regBuff
allreduce,0,65536,tree,ll,2,1,-1,-1,1
allreduce,65537,4294967295,nvls_tree,simple,-1,4,32,1
broadcast,0,4294967295,ring,ll128,-1,-1,-1
"""
STEPS = """\
# a job of 64 chips
step,loss,step_time_ms
10,2.5,1204.5
11,2.4,1210.25
12,2.4,1999
"""
SCALING = """\
model,gpus,nodes,iteration_time_s,mfu_pct
70B,64,8,10.5,43.2
70B,128,16,10.9,41.6
70B,256,32,,40
"""
COLLECTIVES = """\
system,op,ranks,nodes,size_bytes,time_us_oop,algbw_oop,busbw_oop,time_us_ip,algbw_ip,busbw_ip
a,all_gather,4,2,1048576,50.00,20.97,15.73,51.00,20.56,15.42
a,all_gather,8,4,1048576,60.00,17.48,15.29,61.00,17.19,15.04
"""

_POINTS = [Point(1024, 10.5, 11.25), Point(1 << 20, 123.4, 99.5), Point(1 << 30, 12345.6, 20000.0)]
FRAGMENTS = {
    **{f"nccl-tests, {name}": ("all_reduce.log", write(_POINTS, dialect)) for name, dialect in DIALECTS.items() if dialect.reduction},
    "nccl-tests JSON": ("run.json", json.dumps(NCCL_JSON)),
    "rccl-tests JSON": ("run.jsonl", "\n".join(map(json.dumps, RCCL)) + "\n"),
    "inspector": ("inspector.log", "\n".join(map(json.dumps, _INSPECTOR)) + "\n"),
    "tuning": ("nccl.log", TUNING_NEW),
    "tuner": ("tuner.conf", TUNER),
    "OSU": ("osu.log", "## ranks: 4\n" + OSU),
    "IMB": ("imb.log", IMB),
    "perftest": ("ib.log", PERFTEST),
    "peer copies": ("p2p.log", P2P),
    "steps": ("steps.csv", STEPS),
    "steps as JSON": ("steps.jsonl", '{"step": 1, "step_time_s": 1.5}\n{"step": 2, "step_time_s": 1.25}\n'),
    "scaling": ("scaling.csv", SCALING),
    "collectives": ("nccl.csv", COLLECTIVES),
}  # fmt: skip
