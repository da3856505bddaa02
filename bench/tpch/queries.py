"""`QUERIES`: the 22 queries of TPC-H, with the parameters of its validation run.

``sql`` is the published text.  The rules are what somebody who knows the data writes, beside which the
translation is measured.  Their heads of query n are ``qn``, which has the columns of the SQL in their order,
and ``qn_...``, on which it stands, so that all programs can be installed in one workspace.  A sum without
groups over nothing is no tuple, where SQL has a row of NULL.
"""

from __future__ import annotations

from dataclasses import dataclass

from bench.datasets import DataMissing, data_folder


@dataclass(frozen=True)
class Query:
    """One query.

    Attributes:
        number: From 1 to 22.
        rules: The program.
        order_by, limit: What ``Database.query`` takes, columns of the head; a head that is kept has all rows.
    """

    number: int
    rules: str
    order_by: str | None = None
    limit: int | None = None

    @property
    def head(self) -> str:
        return f"q{self.number}"

    @property
    def sql(self) -> str:
        """The published text.  Raises DataMissing."""
        path = data_folder() / "tpch-queries" / f"{self.number:02}.sql"
        if not path.is_file():
            raise DataMissing(
                f"tpch-queries/{path.name} is not in the data folder; set LFTJ_DATA to where it is"
            )
        return path.read_text(encoding="utf-8").rstrip().rstrip(";")

    @property
    def unlimited_sql(self) -> str:
        """The same with all rows."""
        return self.sql if self.limit is None else self.sql.rpartition("limit")[0]

    @property
    def sql_order(self) -> str | None:
        """By which columns the answer is ordered."""
        _, by, columns = self.unlimited_sql.rpartition("order by")
        return columns if by else None


_ALL = [
    Query(
        1,
        """
        q1(f, s, sum_qty: sum(q), sum_base_price: sum(p), sum_disc_price: sum(d), sum_charge: sum(c),
           avg_qty: avg(q), avg_price: avg(p), avg_disc: avg(r), count_order: count())
            <- lineitem(l_returnflag: f, l_linestatus: s, l_quantity: q, l_extendedprice: p, l_discount: r,
                        l_tax: t, l_shipdate: h),
               h <= 1998-09-02, d = p * (1 - r), c = d * (1 + t).
        """,
        "f, s",
    ),
    Query(
        2,
        """
        q2_eu(p, s, c, nn)
            <- partsupp(ps_partkey: p, ps_suppkey: s, ps_supplycost: c),
               supplier(s_suppkey: s, s_nationkey: n),
               nation(n_nationkey: n, n_name: nn, n_regionkey: g), region(r_regionkey: g, r_name: "EUROPE").
        q2_least[p] = min(c) <- q2_eu(p, _, c, _).
        q2(s_acctbal: b, s_name: sn, n_name: nn, p_partkey: p, p_mfgr: m, s_address: a, s_phone: h,
           s_comment: t)
            <- part(p_partkey: p, p_mfgr: m, p_size: 15, p_type: y), y like "%BRASS", q2_least[p] = c,
               q2_eu(p, s, c, nn),
               supplier(s_suppkey: s, s_name: sn, s_address: a, s_phone: h, s_acctbal: b, s_comment: t).
        """,
        "s_acctbal desc, n_name, s_name, p_partkey",
        100,
    ),
    Query(
        3,
        """
        q3_sums(o, d, y, revenue: sum(v))
            <- customer(c_custkey: c, c_mktsegment: "BUILDING"),
               orders(o_orderkey: o, o_custkey: c, o_orderdate: d, o_shippriority: y), d < 1995-03-15,
               lineitem(l_orderkey: o, l_extendedprice: p, l_discount: x, l_shipdate: h), h > 1995-03-15,
               v = p * (1 - x).
        q3(o, revenue: v, d, y) <- q3_sums(o, d, y, v).
        """,
        "revenue desc, d",
        10,
    ),
    Query(
        4,
        """
        q4_late(o) <- lineitem(l_orderkey: o, l_commitdate: c, l_receiptdate: r), c < r.
        q4(y, n: count())
            <- orders(o_orderkey: o, o_orderdate: d, o_orderpriority: y), d >= 1993-07-01, d < 1993-10-01,
               q4_late(o).
        """,
        "y",
    ),
    Query(
        5,
        """
        q5(name, revenue: sum(v))
            <- region(r_regionkey: g, r_name: "ASIA"), nation(n_nationkey: n, n_name: name, n_regionkey: g),
               customer(c_custkey: c, c_nationkey: n), supplier(s_suppkey: s, s_nationkey: n),
               orders(o_orderkey: o, o_custkey: c, o_orderdate: d), d >= 1994-01-01, d < 1995-01-01,
               lineitem(l_orderkey: o, l_suppkey: s, l_extendedprice: p, l_discount: x), v = p * (1 - x).
        """,
        "revenue desc",
    ),
    Query(
        6,
        """
        q6(revenue: sum(v))
            <- lineitem(l_quantity: q, l_extendedprice: p, l_discount: x, l_shipdate: h),
               h >= 1994-01-01, h < 1995-01-01, x >= 0.05, x <= 0.07, q < 24, v = p * x.
        """,
    ),
    Query(
        7,
        """
        q7(a, b, y, revenue: sum(v))
            <- nation(n_nationkey: n, n_name: a), nation(n_nationkey: m, n_name: b),
               (a = "FRANCE", b = "GERMANY" ; a = "GERMANY", b = "FRANCE"),
               supplier(s_suppkey: s, s_nationkey: n), customer(c_custkey: c, c_nationkey: m),
               orders(o_orderkey: o, o_custkey: c),
               lineitem(l_orderkey: o, l_suppkey: s, l_extendedprice: p, l_discount: x, l_shipdate: h),
               h >= 1995-01-01, h <= 1996-12-31, y = year(h), v = p * (1 - x).
        """,
        "a, b, y",
    ),
    Query(
        8,
        """
        q8_sums(y, brazil: sum(b), total: sum(v))
            <- region(r_regionkey: g, r_name: "AMERICA"), nation(n_nationkey: n, n_regionkey: g),
               customer(c_custkey: c, c_nationkey: n),
               orders(o_orderkey: o, o_custkey: c, o_orderdate: d), d >= 1995-01-01, d <= 1996-12-31,
               lineitem(l_orderkey: o, l_partkey: p, l_suppkey: s, l_extendedprice: e, l_discount: x),
               part(p_partkey: p, p_type: "ECONOMY ANODIZED STEEL"), supplier(s_suppkey: s, s_nationkey: m),
               nation(n_nationkey: m, n_name: k), v = e * (1 - x), y = year(d),
               b = if(k = "BRAZIL", v, 0).
        q8(y, share: z) <- q8_sums(y, b, t), z = b / t.
        """,
        "y",
    ),
    Query(
        9,
        """
        q9(name, y, sum_profit: sum(v))
            <- part(p_partkey: p, p_name: t), t like "%green%",
               lineitem(l_orderkey: o, l_partkey: p, l_suppkey: s, l_quantity: q, l_extendedprice: e,
                        l_discount: x),
               supplier(s_suppkey: s, s_nationkey: n), nation(n_nationkey: n, n_name: name),
               partsupp(ps_partkey: p, ps_suppkey: s, ps_supplycost: c),
               orders(o_orderkey: o, o_orderdate: d), y = year(d), v = e * (1 - x) - c * q.
        """,
        "name, y desc",
    ),
    Query(
        10,
        """
        q10_sums(c, name, b, ph, nn, ad, cm, revenue: sum(v))
            <- customer(c_custkey: c, c_name: name, c_acctbal: b, c_address: ad, c_nationkey: n, c_phone: ph,
                        c_comment: cm),
               nation(n_nationkey: n, n_name: nn),
               orders(o_orderkey: o, o_custkey: c, o_orderdate: d), d >= 1993-10-01, d < 1994-01-01,
               lineitem(l_orderkey: o, l_extendedprice: p, l_discount: x, l_returnflag: "R"),
               v = p * (1 - x).
        q10(c, name, revenue: v, b, nn, ad, ph, cm) <- q10_sums(c, name, b, ph, nn, ad, cm, v).
        """,
        "revenue desc",
        20,
    ),
    Query(
        11,
        """
        q11_german(p, s, v)
            <- nation(n_nationkey: n, n_name: "GERMANY"), supplier(s_suppkey: s, s_nationkey: n),
               partsupp(ps_partkey: p, ps_suppkey: s, ps_availqty: a, ps_supplycost: c), v = c * a.
        q11_value[p] = sum(v) <- q11_german(p, _, v).
        q11_total[] = sum(v) <- q11_german(_, _, v).
        q11(p, value: v) <- q11_value[p] = v, q11_total[] = t, v > t * 0.0001.
        """,
        "value desc",
    ),
    Query(
        12,
        """
        q12(m, high: sum(a), low: sum(b))
            <- lineitem(l_orderkey: o, l_shipdate: h, l_commitdate: c, l_receiptdate: r, l_shipmode: m),
               m in ("MAIL", "SHIP"), c < r, h < c, r >= 1994-01-01, r < 1995-01-01,
               orders(o_orderkey: o, o_orderpriority: y),
               a = if(y in ("1-URGENT", "2-HIGH"), 1, 0), b = 1 - a.
        """,
        "m",
    ),
    Query(
        13,
        """
        q13_placed[c] = count()
            <- orders(o_orderkey: o, o_custkey: c, o_comment: t), t not like "%special%requests%".
        q13_per(c, n) <- customer(c_custkey: c), q13_placed[c] = n.
        q13_per(c, n) <- customer(c_custkey: c), !q13_placed(c, _), n = 0.
        q13(n, custdist: count()) <- q13_per(c, n).
        """,
        "custdist desc, n desc",
    ),
    Query(
        14,
        """
        q14_sums(promo: sum(b), total: sum(v))
            <- lineitem(l_partkey: k, l_extendedprice: p, l_discount: x, l_shipdate: h),
               h >= 1995-09-01, h < 1995-10-01, part(p_partkey: k, p_type: y), v = p * (1 - x),
               b = if(y like "PROMO%", v, 0).
        q14(z) <- q14_sums(b, t), z = 100.00 * b / t.
        """,
    ),
    Query(
        15,
        """
        q15_revenue[s] = sum(v)
            <- lineitem(l_suppkey: s, l_extendedprice: p, l_discount: x, l_shipdate: h),
               h >= 1996-01-01, h < 1996-04-01, v = p * (1 - x).
        q15_best[] = max(r) <- q15_revenue[_] = r.
        q15(s, name, ad, ph, r)
            <- q15_best[] = r, q15_revenue[s] = r,
               supplier(s_suppkey: s, s_name: name, s_address: ad, s_phone: ph).
        """,
        "s",
    ),
    Query(
        16,
        """
        q16_bad(s) <- supplier(s_suppkey: s, s_comment: t), t like "%Customer%Complaints%".
        q16_pair(b, t, z, s)
            <- part(p_partkey: p, p_brand: b, p_type: t, p_size: z), b != "Brand#45",
               t not like "MEDIUM POLISHED%", z in (49, 14, 23, 45, 19, 3, 36, 9),
               partsupp(ps_partkey: p, ps_suppkey: s), !q16_bad(s).
        q16(b, t, z, supplier_cnt: count()) <- q16_pair(b, t, z, _).
        """,
        "supplier_cnt desc, b, t, z",
    ),
    Query(
        17,
        """
        q17_chosen(p) <- part(p_partkey: p, p_brand: "Brand#23", p_container: "MED BOX").
        q17_mean[p] = avg(q) <- q17_chosen(p), lineitem(l_partkey: p, l_quantity: q).
        q17_total[] = sum(e)
            <- q17_mean[p] = m, lineitem(l_partkey: p, l_quantity: q, l_extendedprice: e),
               cast(q, "float64") < 0.2 * m.
        q17(z) <- q17_total[] = t, z = t / 7.0.
        """,
    ),
    Query(
        18,
        """
        q18_quantity[o] = sum(q) <- lineitem(l_orderkey: o, l_quantity: q).
        q18(name, c, o, d, p, t)
            <- q18_quantity[o] = t, t > 300,
               orders(o_orderkey: o, o_custkey: c, o_totalprice: p, o_orderdate: d),
               customer(c_custkey: c, c_name: name).
        """,
        "p desc, d",
        100,
    ),
    Query(
        19,
        """
        q19(revenue: sum(v))
            <- lineitem(l_partkey: k, l_quantity: q, l_extendedprice: p, l_discount: x, l_shipmode: m,
                        l_shipinstruct: "DELIVER IN PERSON"), m in ("AIR", "AIR REG"), v = p * (1 - x),
               part(p_partkey: k, p_brand: b, p_size: z, p_container: c), z >= 1,
               (b = "Brand#12", c in ("SM CASE", "SM BOX", "SM PACK", "SM PKG"), q >= 1, q <= 11, z <= 5 ;
                b = "Brand#23", c in ("MED BAG", "MED BOX", "MED PKG", "MED PACK"), q >= 10, q <= 20,
                z <= 10 ;
                b = "Brand#34", c in ("LG CASE", "LG BOX", "LG PACK", "LG PKG"), q >= 20, q <= 30, z <= 15).
        """,
    ),
    Query(
        20,
        """
        q20_forest(p) <- part(p_partkey: p, p_name: t), t like "forest%".
        q20_shipped[p, s] = sum(q)
            <- q20_forest(p), lineitem(l_partkey: p, l_suppkey: s, l_quantity: q, l_shipdate: h),
               h >= 1994-01-01, h < 1995-01-01.
        q20(name, ad)
            <- nation(n_nationkey: n, n_name: "CANADA"),
               supplier(s_suppkey: s, s_name: name, s_address: ad, s_nationkey: n), q20_shipped[p, s] = t,
               partsupp(ps_partkey: p, ps_suppkey: s, ps_availqty: a), cast(a, "decimal(18, 2)") > 0.5 * t.
        """,
        "name",
    ),
    Query(
        21,
        """
        q21_late(o, s) <- lineitem(l_orderkey: o, l_suppkey: s, l_commitdate: c, l_receiptdate: r), r > c.
        q21_other(o, s) <- q21_late(o, s), lineitem(l_orderkey: o, l_suppkey: t), t != s.
        q21_other_late(o, s) <- q21_late(o, s), q21_late(o, t), t != s.
        q21(name, numwait: count())
            <- nation(n_nationkey: n, n_name: "SAUDI ARABIA"),
               supplier(s_suppkey: s, s_name: name, s_nationkey: n),
               lineitem(l_orderkey: o, l_suppkey: s, l_commitdate: c, l_receiptdate: r), r > c,
               orders(o_orderkey: o, o_orderstatus: "F"), q21_other(o, s), !q21_other_late(o, s).
        """,
        "numwait desc, name",
        100,
    ),
    Query(
        22,
        """
        q22_mean[] = avg(b)
            <- customer(c_phone: t, c_acctbal: b), b > 0.00,
               substring(t, 1, 2) in ("13", "31", "23", "29", "30", "18", "17").
        q22(code, numcust: count(), total: sum(b))
            <- customer(c_custkey: c, c_phone: t, c_acctbal: b), code = substring(t, 1, 2),
               code in ("13", "31", "23", "29", "30", "18", "17"), q22_mean[] = m, cast(b, "float64") > m,
               !orders(o_custkey: c).
        """,
        "code",
    ),
]

QUERIES = {query.number: query for query in _ALL}
"""By number."""
