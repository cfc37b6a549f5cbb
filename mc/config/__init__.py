"""The files a user writes: their schema, how they refer to each other, and how they are loaded.

`load_experiment` turns a path into an `ExperimentConfig`: frozen, complete, in SI units. Nothing here imports
JAX; `mc.experiment` turns a configuration into the modules of the engine.
"""

from mc.config.cluster import ClusterConfig as ClusterConfig
from mc.config.cluster import TierConfig as TierConfig
from mc.config.congestion import CongestionConfig as CongestionConfig
from mc.config.congestion import GrowthConfig as GrowthConfig
from mc.config.congestion import IncastConfig as IncastConfig
from mc.config.congestion import LinkStateConfig as LinkStateConfig
from mc.config.congestion import SpreadConfig as SpreadConfig
from mc.config.delay import ConstantDelay as ConstantDelay
from mc.config.delay import EmpiricalDelay as EmpiricalDelay
from mc.config.delay import ExponentialDelay as ExponentialDelay
from mc.config.delay import GammaDelay as GammaDelay
from mc.config.delay import LognormalDelay as LognormalDelay
from mc.config.delay import MixtureComponent as MixtureComponent
from mc.config.delay import MixtureDelay as MixtureDelay
from mc.config.delay import ParetoDelay as ParetoDelay
from mc.config.delay import RatioDelay as RatioDelay
from mc.config.delay import TimeDelay as TimeDelay
from mc.config.delay import WeibullDelay as WeibullDelay
from mc.config.experiment import ExperimentConfig as ExperimentConfig
from mc.config.experiment import RunConfig as RunConfig
from mc.config.failures import FailuresConfig as FailuresConfig
from mc.config.hardware import ChipConfig as ChipConfig
from mc.config.hardware import LinkConfig as LinkConfig
from mc.config.hardware import PeakConfig as PeakConfig
from mc.config.json_schema import json_schema as json_schema
from mc.config.load import load_any as load_any
from mc.config.load import load_cluster as load_cluster
from mc.config.load import load_experiment as load_experiment
from mc.config.load import load_model as load_model
from mc.config.load import load_plan as load_plan
from mc.config.names import COLLECTIVES as COLLECTIVES
from mc.config.names import KINDS as KINDS
from mc.config.names import FileKind as FileKind
from mc.config.noise import KernelsConfig as KernelsConfig
from mc.config.noise import NoiseConfig as NoiseConfig
from mc.config.noise import PausesConfig as PausesConfig
from mc.config.noise import PersistentConfig as PersistentConfig
from mc.config.noise import SlowChipsConfig as SlowChipsConfig
from mc.config.noise import TransientConfig as TransientConfig
from mc.config.plan import DocumentsConfig as DocumentsConfig
from mc.config.plan import FormatsConfig as FormatsConfig
from mc.config.plan import OverlapConfig as OverlapConfig
from mc.config.plan import PlanConfig as PlanConfig
from mc.config.plan import RoutingConfig as RoutingConfig
from mc.config.protocol import FamilyConfig as FamilyConfig
from mc.config.protocol import ProtocolConfig as ProtocolConfig
from mc.config.resolved import config_hash as config_hash
from mc.config.resolved import resolved as resolved
from mc.config.resolved import resolved_yaml as resolved_yaml
from mc.config.serving import LayoutConfig as LayoutConfig
from mc.config.serving import PrefillConfig as PrefillConfig
from mc.config.serving import ServingConfig as ServingConfig
from mc.config.serving import ServingFormatsConfig as ServingFormatsConfig
from mc.config.serving import ServingKernelsConfig as ServingKernelsConfig
from mc.config.serving import SpeculationConfig as SpeculationConfig
from mc.config.workload import ComputeConfig as ComputeConfig
from mc.config.workload import ExchangeConfig as ExchangeConfig
from mc.config.workload import ModelConfig as ModelConfig
