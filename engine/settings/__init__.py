"""What a run is configured with, as frozen values that are checked where they are made.

A file here is a group of ``engine/conf/``; ``run.py`` has them all, and what of them goes together.
Does not cover where the values come from: ``engine.config`` composes them from Hydra groups and the
command line.
"""

from engine.settings.advisor import ADVISED, AdvisorSettings, EndpointSettings, Implementer
from engine.settings.budget import BudgetSettings, PriceSettings
from engine.settings.cache import CacheSettings
from engine.settings.cluster import ClusterSettings
from engine.settings.evaluation import FEWEST_SCORES, CascadeSettings, EvaluationSettings
from engine.settings.fill import FillSettings
from engine.settings.guidance import GUIDED, GuidanceSettings
from engine.settings.islands import IslandSettings
from engine.settings.learning import LearningSettings
from engine.settings.model import Dtype, ModelSettings
from engine.settings.pipeline import PipelineSettings
from engine.settings.pool import PoolSettings
from engine.settings.prompts import Layout, PromptSettings
from engine.settings.run import RunSettings, settings_of
from engine.settings.search import MOST_CHILDREN, NEED_MORE, SearchSettings
from engine.settings.tactics import TacticsSettings
