"""Learning: the model is trained on the run's own children while the run goes on.

Knows no vLLM: the trainer computes with the model's weights itself, in a process of its own.
"""

from engine.learning.group import Group
from engine.learning.groups import MakeGroup, group_of, own_answer, rewards_of
from engine.learning.job import Job, Setup
from engine.learning.judged import Judged
from engine.learning.learner import Adopter, Learner, Learning
from engine.learning.process import TrainerProcess, lower_priority
from engine.learning.steady import Ask, SteadyTrainer
from engine.learning.step import Step
from engine.learning.steps import (
    Steps,
    checkpoint,
    checkpoints,
    most_waiting,
    needed_checkpoint,
)
from engine.learning.trainable import check_learning
from engine.learning.versions import Versions
from engine.learning.work import make_step, new_checkpoint, trainer_of
