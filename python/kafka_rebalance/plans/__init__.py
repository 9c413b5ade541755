"""What would happen if: plans, comparisons, and why."""

from .figures import Figures
from .plan import RebalancePlan, Step, plan
from .rounds import Round

__all__ = ["Figures", "RebalancePlan", "Round", "Step", "plan"]
