"""What a run says about itself: one documented schema, written by `--report` and `--json`.

`superopt schema` prints it as JSON Schema. Field names are an interface: they are added to, never renamed.
"""

from superopt.report.audit import AuditedRule, AuditedWeights, AuditReport
from superopt.report.check import CheckReport, OutputCheck
from superopt.report.costs import (
    CalibratedModel,
    CalibrationReport,
    CostsReport,
    RecordedDeployment,
    RecordedMachine,
    Tally,
)
from superopt.report.deployment import DeploymentReport, DeploymentTrial, Portable
from superopt.report.diff import DiffRegion, DiffReport
from superopt.report.explained import Explained, ExplainReport, RuleAttempt
from superopt.report.prediction import PredictionReport
from superopt.report.record import SCHEMA_VERSION, Environment, ModelFacts, Record
from superopt.report.rewrites import OwnRule, Rewrite, TracedRegion, TracedStep
from superopt.report.run import Report, SearchReport
from superopt.report.timing import BenchReport, BenchRow, Interval, Latency, PointTiming, Profile, TimingReport

__all__ = [
    "SCHEMA_VERSION",
    "AuditReport",
    "AuditedRule",
    "AuditedWeights",
    "BenchReport",
    "BenchRow",
    "CalibratedModel",
    "CalibrationReport",
    "CheckReport",
    "CostsReport",
    "DeploymentReport",
    "DeploymentTrial",
    "DiffRegion",
    "DiffReport",
    "Environment",
    "ExplainReport",
    "Explained",
    "Interval",
    "Latency",
    "ModelFacts",
    "OutputCheck",
    "OwnRule",
    "PointTiming",
    "Portable",
    "PredictionReport",
    "Profile",
    "Record",
    "RecordedDeployment",
    "RecordedMachine",
    "Report",
    "Rewrite",
    "RuleAttempt",
    "SearchReport",
    "Tally",
    "TimingReport",
    "TracedRegion",
    "TracedStep",
]
