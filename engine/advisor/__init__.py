"""The advisor: before a program is written, the model decides what is to be tried.

Each child of a call is a chain of four answers (PACEvolve++, section 3.1 and appendix E; the words
are ours): three ideas; how they compare with the ideas so far; which idea is tested, by what
experiment; and the program. The first three are the advisor's, which is the adapter on the model.
The last one is the implementer's, which is the model without it, or a service elsewhere. What was
thought of and what came of it is kept in the run's log (``engine.store.ideas``), and shown to the
advisor.

A call's K children are K chains of one state: they share the first prompt, and the start of all
others.
"""

from engine.advisor.credit import advised_answers, answers_of
from engine.advisor.endpoint import key_of
from engine.advisor.operator import AdvisedOperator, advised
from engine.advisor.requests import AdvisedRequests
