"""How well a scanner finds the pairs of its crystals."""

from petacq.normalisation.normalisation import Normalisation as Normalisation
from petacq.normalisation.pair_weights import PairWeights as PairWeights
