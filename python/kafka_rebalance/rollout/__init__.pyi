# SPDX-License-Identifier: Apache-2.0

from .controllers import Assumed as Assumed
from .forecast import Forecast as Forecast
from .forecast import PlayedDeploy as PlayedDeploy
from .forecast import rollout as rollout
from .gate import differences as differences
from .manifests import ReadinessProbe as ReadinessProbe
from .manifests import Workload as Workload
from .manifests import read_manifest as read_manifest
