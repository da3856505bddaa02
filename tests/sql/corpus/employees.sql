-- name: above the average of the department
select x.id, x.salary from emp x where x.salary > (select avg(y.salary) from emp y where y.dept = x.dept);

-- name: highest of each department
select dept, id from emp x where not exists (select 1 from emp y where y.dept = x.dept and y.salary > x.salary);

-- name: boss's name
select x.name, y.name boss from emp x left join emp y on x.boss = y.id;

-- name: departments without anybody
select s.c from s where not exists (select 1 from emp where emp.dept = s.c) and s.c is not null;

-- name: more than the boss
select x.name from emp x join emp y on x.boss = y.id where x.salary > y.salary;

-- name: second highest
select max(salary) m from emp where salary < (select max(salary) from emp);

-- name: spread by department
select dept, max(salary) - min(salary) spread, count(boss) n, min(hired) first_hired from emp group by dept having count(*) > 1;

-- name: hired in a month
select extract(year from hired) y, extract(month from hired) m, count(*) n from emp group by y, m;

-- name: departments that pay more than all of one
select dept from emp group by dept having min(salary) > all (select salary from emp where dept = 3);

-- name: those of a department, or the first
select id from emp where dept = 1 or id = (select min(id) from emp);

-- name: in the department of somebody
select id from emp where dept in (select dept from emp where name like 'a%') and id not in (select boss from emp where boss is not null);
