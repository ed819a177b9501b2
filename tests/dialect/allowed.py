"""What is allowed, as expressions over the tables of `tables`: each is run on both engines.

A line is an expression over one table. Those of a table are run together, in queries of some
dozens; what may raise, or has clauses, is a query of its own.
"""

from __future__ import annotations

# Casts, operators and functions by their table, with why they are here where it is not plain.
OVER_RECORDS = r"""
key
cast(key AS STRING)                         -- bytes that are no UTF-8, too
cast(cast(key AS STRING) AS BINARY)         -- and back, unchanged
string(key)
hex(cast(key AS STRING))
length(key)
length(cast(key AS STRING))                 -- characters, as their first bytes promise
char_length(cast(value AS STRING))
character_length(topic)
len(topic)
octet_length(key)
octet_length(cast(key AS STRING))
bit_length(key)
key = 'k'                                   -- a text beside bytes is bytes
key > 'a'
key IN (X'6B', X'FF')
key <=> value
key <=> NULL
cast(key AS STRING) = 'k'
cast(key AS STRING) <> topic
cast(key AS STRING) < cast(value AS STRING)
cast(key AS STRING) LIKE 'k%'
cast(key AS STRING) LIKE '%\\%%'
cast(key AS STRING) LIKE '_'
cast(key AS STRING) LIKE 'a/_' ESCAPE '/'
cast(key AS STRING) NOT LIKE '%1%'
cast(key AS STRING) RLIKE '^[a-z]+$'
cast(key AS STRING) RLIKE '^.$'             -- which is no line terminator
cast(key AS STRING) RLIKE '\\s'           -- with the vertical tab
cast(key AS STRING) RLIKE 'a|(?:b|c){2}'
regexp_like(cast(key AS STRING), '[^a-z]')
regexp_extract(cast(key AS STRING), '([a-z]+)-([0-9]+)', 2)
regexp_extract(cast(key AS STRING), '(k)(x)?')
regexp_replace(cast(key AS STRING), '[0-9]+', 'é')
key || value
cast(key AS STRING) || topic                -- NULL if one is
concat(key, value)
concat(topic, partition, offset, key)
concat_ws('-', topic, partition, NULL)
coalesce(key, value, X'00')
coalesce(cast(key AS STRING), topic)
nvl(key, 'none')
ifnull(timestamp, timestamp '2024-01-01')
nvl2(key, 1, 2L)
nullif(partition, 7)
if(key IS NULL, 'none', cast(key AS STRING))
CASE WHEN key IS NULL THEN topic ELSE cast(key AS STRING) END
CASE partition WHEN 0 THEN 'a' WHEN 1 THEN 'b' END
greatest(cast(key AS STRING), topic)
least(offset, partition, NULL)
isnull(key)
isnotnull(key)
md5(key)
sha1(key)
sha(key)
sha2(key, 256)
base64(value)                               -- in lines of 76
unbase64(base64(key))
hex(key)
hex(offset)
hex(-offset)
upper(topic)
ucase(topic)
lower(upper(topic))
lcase(topic)
upper('straße')
reverse(topic)
replace(topic, 'o', '0')
replace(topic, '', 'x')
repeat(topic, partition - 1)
instr(topic, 'r')
locate('n', topic)
position('n', topic)
position('n' IN topic)
left(topic, 2)
left(topic, -1)
right(topic, 2)
lpad(topic, 9, 'xy')
lpad(topic, 2, '')
rpad(topic, 9)
substring(topic, 0, 2)
substring(topic, -2, 1)
substring(topic, -9, 5)
substring(topic, 2, -1)
substring(topic, 3)
substr(topic, 2, 2)
substring(topic FROM 2 FOR 2)
trim('  a ')
ltrim('  a ')
rtrim('  a ')
btrim('  a ')
trim(BOTH 'os' FROM topic)
trim(LEADING 'o' FROM topic)
trim(TRAILING 's' FROM topic)
startswith(topic, 'or')
endswith(topic, 's')
contains(topic, 'n')
encode(topic, 'UTF-8')
decode(cast(topic AS BINARY), 'UTF-8')
get_json_object(cast(value AS STRING), '$.status')
get_json_object(cast(value AS STRING), '$.n')
get_json_object(cast(value AS STRING), '$.order.id')
get_json_object(cast(value AS STRING), '$.tags[1]')
get_json_object(cast(value AS STRING), "$['a b']")
get_json_object(cast(value AS STRING), '$.tags')
get_json_object('{"a":{"b":"\\u00e9\\/"}}', '$.a')
get_json_object('{"a":1.50}', '$.a')
partition + offset
partition - 1
partition * 2
partition / 2
partition / 3
partition % 3
offset div 7
-offset div 7
-offset % 7
offset / 4.0                                -- a decimal
offset * 1.5
offset - 0.25
partition % 2.5
-partition
~partition
partition & 3
partition | 4
partition ^ 5
offset = '5'                                -- a text beside a number is a number
offset < 5.5
offset = 5.0D
offset BETWEEN partition AND 50
offset NOT BETWEEN 1 AND 50
partition IN (1, 2L, 7.0)
partition NOT IN (1, NULL)
NOT (partition = 1)
partition != 1
partition <> 1 AND key IS NOT NULL OR topic = 'orders'
abs(-partition)
ceil(offset / 7)
ceiling(offset / 7.0)
floor(-offset / 7)
floor(offset)
round(offset / 7, 2)
round(offset / 8)
round(offset / 3.0, 1)
round(offset, -1)
round(-offset, -1)
sign(partition - 1)
signum(partition - 1)
sqrt(offset)
mod(-offset, 7)
pmod(-offset, 7)
cast(offset AS INT)
cast(offset AS DOUBLE)
cast(offset AS DECIMAL(12, 2))
cast(offset AS STRING)
cast(offset AS BOOLEAN)
cast(offset / 8 AS INT)                     -- toward zero
cast(-offset / 8 AS BIGINT)
cast(offset * 0.3 AS INT)
cast(offset / 8 AS STRING)
cast(offset * 0.25 AS STRING)
cast(offset / 4.0 AS DOUBLE)
cast(partition AS TINYINT)
cast(partition AS SMALLINT)
cast(partition = 1 AS INT)
cast(partition = 1 AS STRING)
int('12')
bigint(' -7 ')
double('1e3')
boolean('yes')
timestamp('2024-01-01')
binary(topic)
cast('12' AS INT)
cast('t' AS BOOLEAN)
try_cast(cast(key AS STRING) AS INT)
try_cast(cast(key AS STRING) AS BIGINT)
try_cast(cast(key AS STRING) AS BOOLEAN)
offset::STRING
timestamp
cast(timestamp AS STRING)
cast(timestamp AS DATE)
cast(cast(timestamp AS DATE) AS STRING)
cast(cast(timestamp AS DATE) AS TIMESTAMP)
cast(timestamp AS BIGINT)                   -- the second that has begun, also before 1970
cast(timestamp AS DOUBLE)
cast(offset AS TIMESTAMP)
date(timestamp)
to_date(timestamp)
to_timestamp('2024-01-01 10:00:00')
year(timestamp)
quarter(timestamp)
month(timestamp)
day(timestamp)
dayofmonth(timestamp)
dayofyear(timestamp)
dayofweek(timestamp)
weekday(timestamp)
weekofyear(timestamp)
hour(timestamp)
minute(timestamp)
second(timestamp)
extract(YEAR FROM timestamp)
extract(hour FROM timestamp)
unix_seconds(timestamp)
unix_millis(timestamp)
unix_micros(timestamp)
timestamp_seconds(offset)
timestamp_millis(offset)
timestamp_micros(offset)
date_trunc('DAY', timestamp)
date_trunc('week', timestamp)
date_trunc('MONTH', timestamp)
date_trunc('quarter', timestamp)
date_trunc('YEAR', timestamp)
date_trunc('HOUR', timestamp)
date_trunc('minute', timestamp)
date_trunc('SECOND', timestamp)
date_trunc('MILLISECOND', timestamp)
date_format(timestamp, 'yyyy-MM-dd HH:mm:ss.SSSSSS')
date_format(timestamp, "yyyyMMdd'T'HHmm")
date_format(timestamp, 'hh:mm:ss.SSS a')
from_unixtime(offset)
from_unixtime(offset, 'HH:mm:ss')
datediff(timestamp, timestamp '2024-01-01 23:00:00')
date_add(to_date('2024-02-28'), partition)
date_sub(DATE '2024-03-01', partition)
last_day(timestamp)
timestamp > timestamp '1970-01-01 00:00:00.000001'
timestamp >= '2024-02-29'                   -- a text beside a time is a time
timestamp BETWEEN '2024-01-01' AND '2024-12-31 23:59:59'
timestamp_seconds(offset) + INTERVAL 1 DAY
timestamp_seconds(offset) - INTERVAL '90' MINUTES
timestamp '2024-01-31 10:00:00' + INTERVAL 1 MONTH
timestamp '2024-02-29 10:00:00' - INTERVAL 1 YEAR
headers
headers.key
size(headers)
cardinality(headers)
get(headers, 0)
get(headers, 1).key
get(headers, 5).value
headers IS NULL
transform(headers, h -> h.key)
transform(headers, h -> length(h.value) + partition)
filter(headers, h -> h.key = 'a')
filter(headers, h -> h.value IS NULL).key AS nulls
exists(headers, h -> h.key = 'ü')
exists(headers, h -> h.value = '2')          -- NULL if a value is
transform(array(1, NULL), x -> x * 2)
struct(topic, partition)
struct(topic AS t, offset + 1).t
named_struct('a', partition, 'b', topic)
(array(partition, 5))[0]
element_at(array(partition, 5), -1)
array_contains(headers.key, 'a')
array(topic, 'x')
NULL = NULL
NULL AND false
1 IN (2, NULL)
X''
X'F'
'it''s'
'a\nb'
r'a\n'
"double"
'one' 'two'
1L
2S
3Y
1.5D
1.50BD
.5
1e3
3000000000
99999999999999999999
-2147483648
TIMESTAMP '2024-02-29 13:04:05.120'
DATE '2024-02-29'
'10' + 1
'3' / 2
1 <=> NULL
2.50 + 1
1.10 * 1.10
10.0 / 3
"""
OVER_BATCHES = r"""
share
part
share > 1
share = share                               -- NaN equals itself
share < 0.5D
isnan(share)
-share
abs(share)
round(share, 1)
round(part, 1)
floor(share)
ceil(share)
sign(part)
sqrt(part)
part + 1
part * part
part / 4
part - recordsCount
part % 2
cast(part AS INT)
cast(part AS STRING)
extreme
extreme > 5
extreme = 9007199254740993
extreme / 2
cast(extreme AS DOUBLE)
cast(extreme AS STRING)
hex(extreme)
extreme IN (0, -1)
isValid
isValid AND magic = 2
isValid OR magic = 2
NOT isValid
isValid = true
isValid <=> NULL
cast(isValid AS STRING)
cast(isValid AS INT)
magic + producerEpoch
magic * 2
producerEpoch / 2
producerEpoch div 2
producerEpoch % 2
-producerEpoch
magic = producerEpoch
coalesce(producerEpoch, magic)
greatest(magic, producerEpoch, recordsCount)
recordsCount * 1.5
recordsCount / 8.0
round(recordsCount / 3.0, 2)
crc / 1024.0
round(crc / 1024 / 1024, 3)
crc * 100
codec = 'zstd'
codec IN ('none', 'gzip')
upper(codec)
lower(codec)
timestamp_millis(maxTimestampMs)
date_trunc('HOUR', timestamp_millis(maxTimestampMs))
if(isValid, recordsCount, 0.5)
CASE WHEN part > 1 THEN part WHEN part = 0 THEN magic ELSE 0.5 END
"""
QUERIES = r"""
SELECT topic, count(*) AS records, count(DISTINCT key) AS keys, count_if(value IS NULL) AS tombstones FROM records WHERE topic = 'accounts' GROUP BY topic
SELECT topic, date_trunc('DAY', timestamp) AS day, count(*) AS n FROM records WHERE value IS NULL GROUP BY ALL ORDER BY topic, day
SELECT cast(key AS STRING) AS k, count(*) FROM records GROUP BY k ORDER BY k
SELECT DISTINCT cast(key AS STRING) FROM records
SELECT offset, key FROM records ORDER BY key, offset
SELECT offset, timestamp FROM records ORDER BY timestamp DESC, offset
SELECT offset, timestamp FROM records ORDER BY timestamp ASC NULLS LAST, offset DESC
SELECT baseOffset, share FROM batches ORDER BY share, baseOffset
SELECT share, count(*) FROM batches GROUP BY share
SELECT part, count(*) FROM batches GROUP BY part HAVING count(*) > 1 ORDER BY 2 DESC, 1
SELECT count(*), count(1), count(key), count(DISTINCT topic, partition), count(DISTINCT timestamp) FROM records
SELECT sum(partition), sum(offset), avg(offset), mean(partition), min(key), max(key), min(topic), max(timestamp), sum(DISTINCT partition) FROM records
SELECT max(cast(key AS STRING)), min(cast(value AS STRING)), count(DISTINCT cast(key AS STRING)) FROM records
SELECT sum(recordsCount * 1.5), avg(recordsCount * 1.5), sum(part), avg(part), max(share), min(share), avg(magic) FROM batches
SELECT every(isValid), bool_and(isValid), some(isValid), any(isValid), bool_or(isValid), count_if(isValid) FROM batches
SELECT sum(recordsCount), avg(recordsCount), max(part), every(isValid) FROM batches WHERE magic > 5
SELECT topic, max_by(key, offset), min_by(timestamp, offset) FROM records GROUP BY topic
SELECT topic, sort_array(collect_set(partition)), size(collect_list(key)), sort_array(collect_list(topic), false) FROM records GROUP BY topic
SELECT count(*) FILTER (WHERE partition = 1), sum(offset) FILTER (WHERE key IS NOT NULL) FROM records
SELECT sum(offset) / count(*), max(offset) - min(offset) + 1, round(avg(offset), 2) FROM records
SELECT upper(topic), partition + 1, count(*) FROM records GROUP BY upper(topic), partition + 1
SELECT offset DIV 5, partition, count(*) FROM records GROUP BY offset DIV 5, partition ORDER BY 1, 2 LIMIT 9 OFFSET 3
SELECT topic AS t, count(*) AS n FROM records GROUP BY t HAVING n > 5 AND t <> 'x' ORDER BY n DESC, t
SELECT topic FROM records GROUP BY topic ORDER BY sum(offset) DESC, topic
SELECT max(offset) - min(offset) AS d FROM records HAVING d > 5
SELECT offset, row_number() OVER (PARTITION BY topic ORDER BY offset DESC) FROM records
SELECT offset, rank() OVER (ORDER BY topic), dense_rank() OVER (ORDER BY partition DESC), percent_rank() OVER (ORDER BY topic), cume_dist() OVER (ORDER BY topic), ntile(3) OVER (ORDER BY offset) FROM records
SELECT offset, lag(key) OVER (ORDER BY offset), lead(offset, 2) OVER (PARTITION BY topic ORDER BY offset), lag(offset, 1, -1L) OVER (ORDER BY offset) FROM records
SELECT offset, sum(offset) OVER (PARTITION BY topic ORDER BY offset), avg(partition) OVER (ORDER BY offset ROWS BETWEEN 2 PRECEDING AND CURRENT ROW), count(*) OVER (), max(cast(key AS STRING)) OVER (PARTITION BY partition) FROM records
SELECT topic, sum(offset) AS s, rank() OVER (ORDER BY sum(offset) DESC) FROM records GROUP BY topic ORDER BY s
SELECT offset, rank() OVER (ORDER BY offset / (partition + 1)) FROM records
SELECT r.offset, b.baseOffset FROM records r JOIN batches b ON r.topic = b.topic AND r.partition = b.partition
SELECT r.offset, b.baseOffset FROM records r, batches b WHERE r.offset = b.baseOffset
SELECT r.offset, b.codec FROM records r LEFT JOIN batches b ON r.offset = b.baseOffset AND b.codec = 'gzip'
SELECT * FROM (SELECT topic, offset FROM records) a FULL JOIN (SELECT topic, codec FROM batches) b USING (topic)
SELECT * FROM (SELECT topic, offset FROM records) a RIGHT JOIN (SELECT topic, codec FROM batches) b USING (topic)
SELECT offset FROM records r LEFT SEMI JOIN batches b ON r.topic = b.topic
SELECT offset FROM records r LEFT ANTI JOIN batches b ON r.topic = b.topic
SELECT a.offset, b.offset FROM records a JOIN records b ON a.key = b.key AND a.offset < b.offset
SELECT * FROM records r CROSS JOIN (SELECT 1 AS one) x
SELECT offset FROM records WHERE topic IN (SELECT topic FROM batches WHERE codec = 'gzip')
SELECT offset FROM records WHERE cast(key AS STRING) NOT IN (SELECT codec FROM batches WHERE codec IS NOT NULL)
SELECT offset FROM records r WHERE EXISTS (SELECT 1 FROM batches b WHERE b.topic = r.topic AND b.magic = 1)
SELECT offset, (SELECT max(b.recordsCount) FROM batches b WHERE b.topic = r.topic) AS most FROM records r
SELECT (SELECT max(offset) FROM records), EXISTS (SELECT 1 FROM batches WHERE magic = 9)
WITH a AS (SELECT topic, max(offset) AS last FROM records GROUP BY topic), b AS (SELECT * FROM a WHERE last > 5) SELECT * FROM b JOIN a USING (topic)
WITH a(x, y) AS (SELECT topic, offset FROM records) SELECT x, sum(y) FROM a GROUP BY x
SELECT topic FROM records UNION SELECT codec FROM batches
SELECT partition FROM records UNION ALL SELECT baseOffset FROM batches ORDER BY 1 LIMIT 7
SELECT partition FROM records EXCEPT SELECT magic FROM batches
SELECT topic FROM records INTERSECT SELECT topic FROM batches
SELECT topic FROM records INTERSECT ALL SELECT topic FROM batches
SELECT 1 UNION SELECT 1.5 UNION ALL SELECT 2D
SELECT key FROM records UNION SELECT topic FROM records
SELECT offset, h.key, h.value FROM records LATERAL VIEW explode(headers) t AS h
SELECT offset, p, h.key FROM records LATERAL VIEW OUTER posexplode(headers) t AS p, h
SELECT offset, explode(headers) AS h FROM records
SELECT explode(headers) FROM records WHERE offset > 50
SELECT size(filter(headers, h -> h.key = 'a')) AS n, count(*) FROM records GROUP BY ALL
SELECT offset, row_number() OVER (ORDER BY size(filter(headers, h -> h.key = 'a')), offset) FROM records
SELECT headers[0].key, headers[0], element_at(headers, 1).value FROM records WHERE size(headers) > 0
VALUES (1, 'a'), (2L, NULL)
DESCRIBE records
SELECT * FROM VALUES (1, 'a'), (2.5, 'b') AS t(x, y)
SELECT * EXCEPT (value, headers) FROM records
SELECT r.* FROM records r WHERE r.offset < 9
SELECT `offset`, R.Topic, TOPIC FROM records AS r
SELECT partition AS topic, topic AS x FROM records ORDER BY topic, offset
SELECT 1 AS a, a + 1 AS b
SELECT offset AS o FROM records ORDER BY o DESC LIMIT 3 OFFSET 2
SELECT offset FROM (SELECT * FROM records ORDER BY offset LIMIT 5) ORDER BY offset DESC
SELECT DISTINCT topic, partition FROM records ORDER BY 2, 1
SELECT * FROM records LIMIT 0
SELECT /*+ BROADCAST(records) */ count(*) FROM records
SELECT cast(r.key AS STRING), cast(get(headers, 0).value AS STRING) FROM records r
"""  # noqa: E501
# Both engines raise.
ERRORS = r"""
SELECT 5 / 0
SELECT 5 % 0
SELECT 5 div 0
SELECT 5.0 / 0
SELECT cast('abc' AS INT)
SELECT cast('1.5' AS INT)
SELECT cast('' AS BIGINT)
SELECT cast('x' AS BOOLEAN)
SELECT cast(2147483648 AS INT)
SELECT cast(300 AS TINYINT)
SELECT 2147483647 + 1
SELECT 9223372036854775807 + 1
SELECT 9223372036854775807 * 2
SELECT cast(12345 AS DECIMAL(3, 0))
SELECT abs(extreme) FROM batches
SELECT -extreme FROM batches
SELECT cast(share AS INT) FROM batches
SELECT sum(9223372036854775807) FROM batches
SELECT headers[9] FROM records
SELECT element_at(array(1), 2)
SELECT 'a' + 1
SELECT decode(X'FF', 'UTF-8')
SELECT (SELECT topic FROM records)
SELECT 'a' LIKE 'a\\b'
SELECT topic, count(*) FROM records
SELECT nosuch FROM records
SELECT topic FROM records r JOIN batches b ON r.offset = b.baseOffset
SELECT count(*) FROM records WHERE count(*) > 1
SELECT topic FROM records WHERE row_number() OVER (ORDER BY offset) = 1
SELECT 1 FROM records WHERE partition
SELECT topic FROM records UNION SELECT topic, offset FROM records
"""
# Spark gives rows for most of these; ours are other rows, or not known to be the same.
REFUSED = r"""
SELECT approx_count_distinct(key) FROM records
SELECT percentile_approx(offset, 0.5) FROM records
SELECT stddev(offset) FROM records
SELECT first(topic) FROM records
SELECT last(topic) FROM records
SELECT any_value(topic) FROM records
SELECT collect_list(topic) FROM records
SELECT collect_set(topic) FROM records
SELECT rand()
SELECT uuid()
SELECT current_timestamp()
SELECT current_date
SELECT monotonically_increasing_id() FROM records
SELECT exp(1)
SELECT ln(2)
SELECT pow(2, 0.5)
SELECT initcap(topic) FROM records
SELECT crc32(key) FROM records
SELECT xxhash64(key) FROM records
SELECT split(topic, ',') FROM records
SELECT map('a', 1)
SELECT window(timestamp, '1 hour'), count(*) FROM records GROUP BY 1
SELECT date_format(timestamp, 'EEEE') FROM records
SELECT date_format(timestamp, 'w') FROM records
SELECT date_trunc('DECADE', timestamp) FROM records
SELECT cast('2024-1-1' AS DATE)
SELECT cast('2024-01-01T00:00:00+02:00' AS TIMESTAMP)
SELECT cast(share AS DECIMAL(10, 2)) FROM batches
SELECT 1.5F
SELECT cast(key AS INT) FROM records
SELECT array(1, 2)[0]
SELECT cast(1 AS FLOAT)
SELECT topic RLIKE '(?i)ORDERS' FROM records
SELECT topic RLIKE 'a++' FROM records
SELECT topic RLIKE '\\bo' FROM records
SELECT topic RLIKE '\\p{Lu}' FROM records
SELECT topic RLIKE '[a-z&&[^o]]' FROM records
SELECT topic LIKE topic FROM records
SELECT topic ILIKE 'O%' FROM records
SELECT topic LIKE ANY ('o%', 'a%') FROM records
SELECT get_json_object(topic, '$.a[*]') FROM records
SELECT get_json_object(topic, topic) FROM records
SELECT int '5'
SELECT struct(1) = struct(1)
SELECT headers[0] = headers[0] FROM records
SELECT DISTINCT headers FROM records
SELECT topic, count(*) FROM records GROUP BY ROLLUP (topic)
SELECT topic, count(*) FROM records GROUP BY topic WITH CUBE
SELECT topic, count(*) FROM records GROUP BY topic GROUPING SETS ((topic), ())
SELECT topic FROM records QUALIFY row_number() OVER (ORDER BY offset) = 1
SELECT * FROM records TABLESAMPLE (10 PERCENT)
SELECT * FROM records PIVOT (count(*) FOR partition IN (0, 1))
SELECT * FROM records r NATURAL JOIN batches b
SELECT * FROM range(5)
SELECT * FROM records SORT BY offset
SELECT * FROM records CLUSTER BY offset
SELECT * FROM records DISTRIBUTE BY offset
SELECT sum(offset) OVER w FROM records WINDOW w AS (ORDER BY offset)
SELECT first_value(topic) OVER (ORDER BY offset) FROM records
SELECT sum(offset) OVER (ORDER BY offset RANGE BETWEEN 5 PRECEDING AND CURRENT ROW) FROM records
SELECT transform(headers, (h, i) -> i) FROM records
SELECT aggregate(array(1), 0, (a, x) -> a + x)
SELECT 9999999999999999999999999999999999999 * 9.5
SELECT round(offset, partition) FROM records
WITH RECURSIVE t AS (SELECT 1) SELECT * FROM t
FROM records |> SELECT topic
EXPLAIN SELECT 1
SET x = 1
INSERT INTO records VALUES (1)
CREATE TABLE t (a INT)
DROP TABLE records
COPY records TO 'x'
SELECT * FROM read_csv('/etc/passwd')
"""
# A value shows that only Spark knows: while the query runs.
NOT_KNOWN = r"""
SELECT substring(cast(key AS STRING), 1, 2) FROM records
SELECT upper('ǰ')
SELECT lower('ΑΣ')
SELECT cast(share AS STRING) FROM batches
SELECT get_json_object('{"a":1,}', '$.a')
SELECT get_json_object("{'a':1}", '$.a')
SELECT get_json_object('{"a":1} x', '$.a')
SELECT get_json_object('{"a":{"b":1.50}}', '$.a')
SELECT cast(concat('2024-1-', 1 + partition) AS DATE) FROM records
SELECT cast('Infinity' AS DOUBLE)
SELECT array(cast(key AS STRING)) FROM records
"""


def lines(text: str) -> list[str]:
    """Without what stands behind `--`."""
    found = [line.split(" -- ")[0].strip() for line in text.strip().splitlines()]
    return [line for line in found if line]
