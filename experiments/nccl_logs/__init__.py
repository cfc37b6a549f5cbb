"""NCCL's own constants, uncalibrated, against published logs of nccl-tests."""
