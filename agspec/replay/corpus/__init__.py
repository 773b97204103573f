"""Frozen corpora: built from what was recorded or from plain text, merged, verified, and told of in reports."""

from agspec.replay.corpus.build import MAX_TOKENS, build_corpus
from agspec.replay.corpus.merge import merge_corpora
from agspec.replay.corpus.told import corpus_told
from agspec.replay.corpus.verify import verify_corpus

__all__ = ["MAX_TOKENS", "build_corpus", "corpus_told", "merge_corpora", "verify_corpus"]
