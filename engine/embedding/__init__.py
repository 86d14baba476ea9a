"""Embedding: what makes vectors of programs, so that their likeness can be measured.

`Embedder` is the interface; `NGramEmbedder` needs no model, ``engine.inference.ModelEmbedder`` has
the served one; `KeptEmbeddings` keeps what either made.
"""

from engine.embedding.embedder import Embedder, Vectors, directions
from engine.embedding.kept import KeptEmbeddings
from engine.embedding.ngrams import NGramEmbedder

__all__ = ["Embedder", "KeptEmbeddings", "NGramEmbedder", "Vectors", "directions"]
