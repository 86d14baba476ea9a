"""Learning: the model is trained on the run's own children while the run goes on.

Knows no vLLM: the trainer computes with the model's weights itself, in a process of its own.
"""

from engine.learning.groups import group_of, own_answer, rewards_of
from engine.learning.learner import ADAPTERS, Learner
from engine.learning.process import Setup, TrainerProcess
from engine.learning.trainable import check_learning
