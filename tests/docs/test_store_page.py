import re

from engine.reference import DOCS
from engine.store.schema import metadata


def test_the_store_page_lists_every_table_and_no_other():
    rows = re.findall(r"^\| `(\w+)` \|", (DOCS / "store.md").read_text(), flags=re.MULTILINE)
    assert sorted(rows) == sorted(metadata.tables)
