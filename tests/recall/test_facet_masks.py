"""Masks of facets, against the lists that they are made of."""

from __future__ import annotations

from array import array
from random import Random

from memorywall.recall.facet_masks import FacetMasks
from tests.support.extent import chosen_seed


def test_a_mask_has_the_documents_of_its_facet_while_a_shard_grows() -> None:
    source = Random(chosen_seed())
    masks = FacetMasks()
    places = {name: array("i") for name in range(24)}
    documents = 0
    for _ in range(40):
        for number in range(documents, documents := documents + 200):
            for name, numbers in places.items():
                # The facets differ in size, so that some masks are kept and some are not.
                if source.random() < (name + 1) / 24:
                    numbers.append(number)
        for name in source.sample(range(24), 12):
            mask = masks.mask(name, places[name], documents)
            found = mask.to_bytes(documents, "little")
            assert [at for at, one in enumerate(found) if one] == list(places[name])
            assert set(found) <= {0, 1}
    assert masks.size <= 16 * documents


def test_a_facet_without_documents_has_an_empty_mask() -> None:
    assert FacetMasks().mask("nothing", array("i"), 9) == 0
