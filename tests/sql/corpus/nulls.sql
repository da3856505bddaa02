-- name: is null
select a from r where b is null;

-- name: or null
select a from r where b > 10 or a = 3;

-- name: not or
select a from r where not (b > 10 or a = 1);

-- name: not and
select a, b from r where not (b > 10 and a < 4);

-- name: in list
select a from r where b in (10, 20);

-- name: not in list
select a from r where b not in (10, 20);

-- name: in list with null
select a from r where b in (10, null);

-- name: not in list with null
select a from r where b not in (10, null);

-- name: in list of columns
select a, b from r where 10 in (a, b, a + b);

-- name: between
select a from r where b between 5 and 10;

-- name: not between
select a from r where b not between 5 and a * 10;

-- name: truth values
select a, b, b > 10 x, not (b > 10) y, b > 10 and a > 1 z, b > 10 or a > 1 w from r;

-- name: is true
select a, b from r where (b > 10) is not true;

-- name: is unknown
select a, b from r where (b > 10 or a > 100) is null;

-- name: distinct from
select a, b from r where b is distinct from 10;

-- name: not distinct from null
select a, b from r where b is not distinct from null;

-- name: equals itself
select a, b from r where b = b;

-- name: case
select a, case when b > 10 then 'big' when b is null then 'none' else 'small' end k from r;

-- name: case of a value
select a, case b when 10 then 'ten' when null then 'never' else 'other' end k from r;

-- name: case without else
select a, case when b > 10 then a end k from r;

-- name: cases of columns
select case when a > b then a when a < b then b else -1 end x, case when f then p when x > 1 then q else x end y from e, m;

-- name: case that guards
select a, case when a <> 2 then b % (a - 2) else 0 end k from e;

-- name: case as a condition
select a from r where case when b is null then a = 3 when b > 10 then a = 4 else b = 5 end;

-- name: coalesce
select coalesce(b, a, 0) x from r;

-- name: coalesce of types
select coalesce(p, q, x) v, coalesce(g, 'none') t from m;

-- name: coalesce in a join
select r.b, s.d from r join s on coalesce(r.a, 0) = coalesce(s.c, 0);

-- name: nullif
select nullif(b, 10) x, coalesce(nullif(a, 1), -1) y from r;

-- name: ifnull and if
select ifnull(b, 0) x, if(b > 10, a, -a) y from r;

-- name: null literals
select a, null n, b + null m, coalesce(null, b) c from r;

-- name: null comparison
select a from r where b = null;

-- name: booleans
select k, f, not f nf, f and k > 1 af, f or k > 1 of_, f is true t from m;

-- name: boolean column as a condition
select k, p from m where f;

-- name: boolean column joined
select x.k, y.k yk from m x join m y on x.f = y.f and x.k < y.k;

-- name: null in arithmetic
select a + b s, a - b d, a * b p, -b n, abs(b - 15) m from r;

-- name: greatest and least
select greatest(a, b) g, least(a, b, 7) l from r;

-- name: null of no rows, counted
select m, count(distinct m) n from (select max(x.a) m from r x, r y where x.a = y.a and x.a > 100) group by m;

-- name: null of what is known by an equation
select a, b from r where a = 1 and (a + 2) is not null and ((a = 1) is null or (a > b) is not null);

-- name: null passed over by concat
select k, concat(g, g) is null n, concat_ws('-', g, g) is null w, concat_ws(g, 'a') is null a from m where concat(g, '') is not null;

-- name: case whose last branches are null
select case when f then g when q > 1 then null end x, case when f then p when q > 1 then case when q > 5 then null end end y from m;

-- name: case whose last branches are null without a partner
select case when x.f then x.g when x.q > 1 then y.g end t, case when x.f then x.day when x.q > 1 then y.day end d, case when x.f then x.moment when x.q > 1 then y.moment end t2, case when x.f then x.x when x.q > 1 then y.x end v, case when x.f then x.f when x.q > 1 then y.f end f from m x left join m y on x.k = y.k + 1;

-- name: case of a subquery of one row and null
select case when f then g when q > 1 then (select t from tx where t > 'b') end x, case when f then (select t from tx where t > 'b') end y, case when q > 1 then 7 when f then (select max(a) from e where a > k + 90) end z from m;

-- name: case that raises where it is asked for
select case when a > 4 then error('no') when a > 2 then b end x, case when a < 9 then 1 when a > 9 then error('no') end y from e where a < 4;

-- name: case that raises
-- raises: no such row
select case when a < 2 then 1 when a > 3 then error('no such row') end x from e;

-- name: what is never null
select a from r where concat(cast(a as varchar), cast(b as varchar)) is null or coalesce(a, b, 0) is null;

-- name: what is never null behind an outer join
select a, d from r left join s on a = c where concat(cast(d as varchar), 'x') is not null and concat_ws(',', cast(d as varchar)) is not null and concat_ws(cast(d as varchar), 'x', 'y') is null;

-- name: case that is never null
select a, b from r where case when b > 10 then b else 0 end is not null and case when a is null then 0 else a end is not null;

-- name: case that may be null
select a, b from r where case when b > 10 then a end is null or case when b > 5 then a when b is null then 1 end > 3 is null;
