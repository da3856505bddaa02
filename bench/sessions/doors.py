"""What is typed in the sessions that the first screen shows, one for each of its four doors."""

from __future__ import annotations

from typing import NamedTuple

TRI = "tri(a, b, c) <- edge(a, b), edge(b, c), edge(a, c)."


class Door(NamedTuple):
    """``files``: what is there, by name; ``typed``: lines, each behind the prompt that asks for it."""

    title: str
    files: dict[str, str]
    typed: tuple[str, ...]


DOORS = {
    "sql.svg": Door(
        "A view of SQL is created, watched, and changes with an INSERT",
        {
            "orders.csv": "id,customer\n1,ann\n2,bob\n3,cid\n",
            "line.csv": "orders,item,price\n1,tea,3\n1,pot,20\n2,cup,5\n",
        },
        (
            "$ lftj shell --load orders=orders.csv --load line=line.csv",
            "lftj> create view spent as select customer, sum(price) total",
            "  ... from orders join line on line.orders = orders.id",
            "  ... group by customer;",
            "lftj> .watch spent",
            "lftj> insert into line values (2, 'kettle', 30);",
            "lftj> select * from spent order by total desc;",
        ),
    ),
    "graphs.svg": Door(
        "Triangles are asked for; what is reached is kept while edges go and come",
        {"edges.csv": "a,b\n1,2\n2,3\n1,3\n3,4\n"},
        (
            "$ lftj shell --load edge=edges.csv",
            f"lftj> {TRI}",
            "lftj> .install reach(a, c) <- (edge(a, c) ;",
            "  ... reach(a, b), edge(b, c)).",
            "lftj> .watch reach",
            "lftj> .erase edge (1, 3)",
            "lftj> .erase edge (2, 3)",
            "lftj> .insert edge (4, 1)",
        ),
    ),
    "streams.svg": Door(
        "Sums by minute of a stream: a late row changes its minute, one that is too late does not",
        {
            "minutes.rules": "stream trade(t) late 5s keep 10m.\n"
            "vol[w] = sum(q) <- trade(q, t), w = tumble(t, 1m).\nfinal vol at w + 1m.\n",
            "trades.csv": "q,t\n5,2026-01-31T10:00:10\n7,2026-01-31T10:00:50\n",
        },
        (
            "$ cat minutes.rules",
            "$ lftj shell --load trade=trades.csv",
            "lftj> .install minutes.rules",
            "lftj> .watch vol_final",
            "lftj> .insert trade (2, 2026-01-31T10:01:02)",
            "lftj> .insert trade (4, 2026-01-31T10:00:59)",
            "lftj> .insert trade (9, 2026-01-31T10:02:30)",
            "lftj> .insert trade (1, 2026-01-31T10:00:20)",
        ),
    ),
    "research.svg": Door(
        "The plan of the triangles, and what two changes do to them",
        {
            "edges.csv": "a,b\n1,2\n2,3\n1,3\n3,4\n",
            "tri.rules": f"{TRI}\n",
            "changes.csv": "txn,a,b,weight\n1,2,4,1\n2,1,2,-1\n",
        },
        (
            "$ cat tri.rules",
            "$ lftj explain tri.rules --load edge=edges.csv",
            "$ cat changes.csv",
            "$ lftj maintain tri.rules --load edge=edges.csv \\",
            "> --changes edge=changes.csv --out-changes tri=- 2> summary.txt",
        ),
    ),
}
"""By the file's name."""
