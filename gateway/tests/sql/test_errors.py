"""Every refusal names what is wrong, where, and what would be right."""

from __future__ import annotations

import pytest

from skerry.expressions.expression import render
from skerry.planner.model.plans import QueryPlan
from skerry.planner.planner import plan_query
from skerry.service.explain import explain, explain_text
from skerry.sql.errors import QueryError

ATTRIBUTES = (
    "attributes are nodeid, parent, level, epoch, light, temp, humidity, voltage, accel_x, accel_y, "
    "xpos, ypos, free_ram, queue_length"
)
FORM = "queries are SELECT … FROM sensors [WHERE …] [GROUP BY …] [HAVING …] SAMPLE PERIOD n unit [FOR n unit] | LIFETIME n unit | ONCE"
EXPRESSION = "expected an expression: an attribute, a number, or an aggregate such as AVG(temp)"
UNITS = (
    "units are degC, C, °C, %RH, RH, lx, lux, klx, V, mV, g, mg, m, cm, mm, km, mgauss, gauss, uT, J, mJ, B, kB, KiB, "
    "ms, s, min, h, day, week, month, year"
)

# (query, what is marked by carets, one-line message)
REFUSED = [
    # names
    ("SELECT tmep FROM sensors ONCE", "tmep",
     f"unknown attribute 'tmep' at column 8: did you mean 'temp'? {ATTRIBUTES}"),
    ("SELECT temp FROM sensors WHERE pressure > 3 ONCE", "pressure",
     f"unknown attribute 'pressure' at column 32: {ATTRIBUTES}"),
    ("SELECT temp FROM sensor ONCE", "sensor",
     "unknown table 'sensor' at column 18: "
     "did you mean 'sensors'? tables are sensors and storage points, of which there are none"),
    ("SELECT average(temp) FROM sensors ONCE", "average(temp)",
     "unknown function 'average' at column 8: did you mean 'avg'? "
     "aggregates are COUNT, SUM, AVG, MIN, MAX, VARIANCE, STDDEV, MEDIAN, TOP, BOTTOM, QUANTILE, HISTOGRAM; "
     "over time WINAVG, WINSUM, WINMIN, WINMAX, WINCOUNT, WINRAND, EXPAVG, DELTA, ADPDELTA, TREND, PULSE, PULSES"),
    *(
        (f"SELECT {wrong} FROM sensors ONCE", wrong,
         f"unknown function '{wrong[:-6]}' at column 8: did you mean '{right}'? "
         "aggregates are COUNT, SUM, AVG, MIN, MAX, VARIANCE, STDDEV, MEDIAN, TOP, BOTTOM, QUANTILE, HISTOGRAM; "
         "over time WINAVG, WINSUM, WINMIN, WINMAX, WINCOUNT, WINRAND, EXPAVG, DELTA, ADPDELTA, TREND, PULSE, PULSES")
        for wrong, right in (("mean(temp)", "avg"), ("VAR(temp)", "variance"), ("distance(temp)", "dist"))
    ),
    ("SELECT nodeid, timestamp FROM sensors ONCE", "timestamp",
     "unknown attribute 'timestamp' at column 16: when a row was sampled is its time, in UTC"),
    ("SELECT nodeid, time * 2 FROM sensors ONCE", "time * 2",
     "'*' has no meaning for moments at column 16: write time - 1 h, time + 90 s, or the difference of two times, which is in s"),
    ("SELECT COUNT() FROM sensors ONCE", "COUNT()", "COUNT() has nothing to be of at column 8: write COUNT(temp)"),
    ("SELECT temp, temp FROM sensors ONCE", "temp",
     "two columns are named 'temp' at column 8: name one of them with AS"),
    *(
        (f"SELECT COUNT(*) FROM {before}AT MOTE 7{behind}", "AT MOTE 7",
         f"AT MOTE does not belong here at column {22 + len(before)}: an index is asked so, by a mote's number, as in "
         "SELECT COUNT(*) FROM climate WHERE temp > 40 AT MOTE 7 HAVING COUNT(*) > 3 OUTPUT ACTION siren")
        for before, behind in (
            ("climate WHERE temp > 40 ", " HAVING COUNT(*) > 3 OUTPUT ACTION siren"), ("climate WHERE temp IS NULL ", ""), ("climate ", ""),
        )
    ),
    # units
    ("SELECT temp FROM sensors WHERE temp > 25 lx ONCE", "25 lx",
     "unit mismatch: 'temp' is in degC, 25 lx is in lx at column 39: write a number in degC, C, °C"),
    ("SELECT temp FROM sensors WHERE 2700 mV < light ONCE", "2700 mV",
     "unit mismatch: 'light' is in lx, 2700 mV is in V at column 32: write a number in lx, lux, klx"),
    ("SELECT nodeid FROM sensors WHERE nodeid = 3 V ONCE", "3 V",
     "unit mismatch: 'nodeid' has no unit, 3 V is in V at column 43: write a number without a unit"),
    ("SELECT temp FROM sensors WHERE temp > light ONCE", "light",
     "unit mismatch: 'temp' is in degC, 'light' is in lx at column 39: "
     "compare values of one unit, or divide by a number with a unit"),
    ("SELECT temp + 3 V FROM sensors ONCE", "3 V",
     "unit mismatch: 'temp' is in degC, 3 V is in V at column 15: write a number in degC, C, °C"),
    ("SELECT temp FROM sensors WHERE temp BETWEEN 1 AND 3 mg ONCE", "3 mg",
     "unit mismatch: 'temp' is in degC, 3 mg is in g at column 51: write a number in degC, C, °C"),
    ("SELECT temp FROM sensors WHERE voltage < 2700 mv ONCE", "2700 mv",
     f"unknown unit 'mv' at column 42: did you mean mV? {UNITS}"),
    ("SELECT temp WHERE dist(loc, point(3 V, 4 degC)) < 5 m ONCE", "3 V",
     "unit mismatch: positions are in m, 3 V is in V at column 35: write a number in m, cm, mm, km"),
    ("SELECT temp WHERE dist(point(3 m, 4 degC), loc) < 5 m ONCE", "4 degC",
     "unit mismatch: positions are in m, 4 degC is in degC at column 35: write a number in m, cm, mm, km"),
    ("SELECT temp WHERE dist(loc, point(voltage, 4)) < 5 m ONCE", "voltage",
     "unit mismatch: positions are in m, 'voltage' is in V at column 35: write a number in m, cm, mm, km"),
    ("SELECT temp WHERE dist(loc, point(3, -4 V)) < 5 m ONCE", "-4 V",
     "unit mismatch: positions are in m, this expression is in V at column 38: write a number in m, cm, mm, km"),
    # kinds
    ("SELECT temp FROM sensors WHERE temp ONCE", "temp",
     "WHERE needs a condition, and this is a number at column 32: compare it, as in temp > 25.5"),
    ("SELECT (temp > 3) + 1 FROM sensors ONCE", "temp > 3",
     "+ needs numbers, and this is a condition at column 9: join conditions with AND and OR"),
    ("SELECT SUM(temp > 25) FROM sensors ONCE", "temp > 25",
     "SUM needs numbers, and this is a condition at column 12: COUNT(*) with the condition in WHERE says how often it is true"),
    # aggregates
    ("SELECT temp, AVG(light) FROM sensors ONCE", "temp",
     "'temp' has one value for each mote, and an aggregate one for all at column 8: "
     "name it in GROUP BY, or ask for them in two queries"),
    ("SELECT COUNT(*), * FROM sensors ONCE", "*",
     "* has one value for each mote, and an aggregate one for all at column 18: "
     "name it in GROUP BY, or ask for them in two queries"),
    ("SELECT temp FROM sensors WHERE AVG(temp) > 3 ONCE", "AVG(temp)",
     "AVG is not allowed in WHERE, which is asked of each mote before it aggregates at column 32: HAVING chooses by aggregates"),
    ("SELECT MAX(AVG(temp)) FROM sensors ONCE", "AVG(temp)",
     "AVG cannot stand inside an aggregate at column 12"),
    ("SELECT SUM(*) FROM sensors ONCE", "SUM(*)",
     "SUM(*) has no meaning at column 8: only COUNT takes *: write SUM(temp)"),
    ("SELECT AVG(xpos * 3) FROM sensors ONCE", "AVG(xpos * 3)",
     "this aggregate cannot be computed by a mote at column 8: "
     "aggregates are computed by motes, and xpos * 3 may need more than a mote's 32 bits"),
    # time
    ("SELECT temp FROM sensors SAMPLE PERIOD 500 ms", "temp",
     "temp cannot be sampled each 500 ms at column 8: "
     "below 1 s it can only be stored, with CREATE STORAGE POINT; accel_x and accel_y can be reported"),
    ("SELECT accel_x, accel_y FROM sensors SAMPLE PERIOD 5 ms", "accel_x, accel_y",
     "rows of 4 bytes each 5 ms are 7.7 frames a second, and a mote's radio carries 6 at column 8: "
     "write SAMPLE PERIOD 7 ms or more, or say which rows you need with WHERE, DELTA or PULSE"),
    ("SELECT MAX(accel_x) FROM sensors SAMPLE PERIOD 5 ms", "MAX(accel_x)",
     "aggregates over all motes cannot be had each 5 ms at column 8: "
     "write SAMPLE PERIOD 1 s or more, or aggregate on each mote, as in PULSES(accel_x > 0.3, 1 s)"),
    ("SELECT AVG(accel_x, 1 min) FROM sensors SAMPLE PERIOD 5 ms", "AVG(accel_x, 1 min)",
     "aggregates over all motes cannot be had each 5 ms at column 8: "
     "write SAMPLE PERIOD 1 s or more, or aggregate on each mote, as in PULSES(accel_x > 0.3, 1 s)"),
    ("SELECT accel_x FROM sensors OUTPUT ACTION SIGNAL hit SAMPLE PERIOD 5 ms", "accel_x",
     "events and actions cannot be had each 5 ms at column 8: write SAMPLE PERIOD 1 s or more"),
    ("SELECT PULSE(accel_x) FROM sensors SAMPLE PERIOD 5 ms", "accel_x",
     "PULSE needs a condition, and this is a number at column 14: compare it, as in temp > 25.5"),
    ("SELECT PULSES(accel_x > 0.3) FROM sensors SAMPLE PERIOD 5 ms", "PULSES(accel_x > 0.3)",
     "PULSES does not take these at column 8: "
     "write PULSES(accel_x > 0.3, 1 s): how often it was true and no longer is, in each second"),
    ("SELECT PULSE(light > 3) FROM sensors WHERE temp > 20 SAMPLE PERIOD 5 s", "PULSE(light > 3)",
     "WHERE leaves out epochs that pulses are made of at column 8: say it within PULSE, as in "
     "PULSE(accel_x > 0.3 AND accel_y < 0.1); WHERE may choose motes, as in nodeid = 5"),
    ("SELECT PULSE(light > 3), WINAVG(3, light) FROM sensors SAMPLE PERIOD 5 s", "PULSE(light > 3), WINAVG(3, light)",
     "pulses and other windows give their rows at different times at column 8: ask for them in two queries"),
    ("SELECT temp FROM sensors SAMPLE PERIOD 2 weeks", "2 weeks",
     "sample period 2 week is above what the network can do at column 40: the longest is 1 week"),
    ("SELECT temp FROM sensors SAMPLE PERIOD 1000.5 ms", "1000.5 ms",
     "sample period 1000.5 ms is too fine at column 40: write whole milliseconds"),
    ("SELECT temp FROM sensors SAMPLE PERIOD 10 s FOR 5 s", "5 s",
     "FOR 5 s is shorter than one sample period at column 49: write at least FOR 10 s"),
    ("SELECT temp FROM sensors SAMPLE PERIOD 10 m", "m",
     "unknown unit of time 'm' at column 43: did you mean 'minutes'? times are in ms, s, min, h, day, week, month, year"),
    ("SELECT temp FROM sensors SAMPLE PERIOD 10 sek", "sek",
     "unknown unit of time 'sek' at column 43: did you mean 'sec'? times are in ms, s, min, h, day, week, month, year"),
    ("SELECT accel_x FROM sensors EPOCH DURATION 4", "4",
     "sample period 4 ms is below what the network can do at column 44: the shortest is 5 ms"),
    ("SELECT temp FROM sensors SAMPLE PERIOD 2 s FOR 1.5", "1.5",
     "FOR 1.5 is no number of sample periods at column 48: "
     "without a unit, FOR takes a number of sample periods: a whole one, at least 1"),
    # clauses
    ("SELECT temp WHERE temp > 1 ONCE WHERE temp < 2", "WHERE",
     "WHERE is said twice at column 33: leave one of them out"),
    ("SELECT temp ONCE SAMPLE PERIOD 2 s", "SAMPLE",
     "how often to sample is said twice at column 18: leave one of them out"),
    ("SELECT temp FROM sensors s WHERE t.temp > 1 ONCE", "t.temp",
     "unknown table 't' at column 34: it is s or sensors"),
    ("SELECT temp FROM sensors HAVING temp > 3 ONCE", "temp > 3",
     "HAVING has no meaning without an aggregate or GROUP BY at column 33: "
     "it chooses among the rows of an aggregate: choose among motes' rows with WHERE"),
    ("SELECT AVG(temp) FROM sensors HAVING temp > 3 ONCE", "temp > 3",
     "HAVING names an attribute, which has one value for each mote at column 38: "
     "HAVING speaks of aggregates and of what GROUP BY names: ask of single motes with WHERE"),
    ("SELECT AVG(temp) FROM sensors HAVING COUNT(*) ONCE", "COUNT(*)",
     "HAVING needs a condition, and this is a number at column 38: compare it, as in temp > 25.5"),
    # syntax
    ("   ", None,
     "the query is empty: write for example SELECT nodeid, temp FROM sensors SAMPLE PERIOD 10 s"),
    ("SELEC temp FROM sensors ONCE", "SELEC",
     "unexpected 'SELEC' at column 1: did you mean SELECT? expected SELECT, CREATE, DROP or STOP QUERY, "
     "or of tables of sensors INSERT, UPDATE, DELETE, COPY, ALTER SENSORS, SHOW or DESCRIBE"),
    *(
        (f"{statement} detectors", marked,
         f"unexpected '{marked}' at column {statement.index(marked) + 1}: "
         "tables of sensors are made by CREATE SENSORS, changed by ALTER SENSORS, and go by DROP SENSORS")
        for statement, marked in (("CREATE TABLE", "TABLE"), ("DROP TABLE", "TABLE"), ("ALTER TABLE", "ALTER"))
    ),
    ("DESC detectors", "DESC", "unexpected 'DESC' at column 1: write DESCRIBE and the name of a table of sensors"),
    ("SELECT FROM sensors ONCE", "FROM", f"unexpected 'FROM' at column 8: {EXPRESSION}"),
    ("SELECT temp light FROM sensors ONCE", "light",
     "unexpected 'light' at column 13: expected a comma, FROM, or AS before a column's name"),
    ("SELECT temp room FROM sensors ONCE", "room",
     "unexpected 'room' at column 13: expected a comma, FROM, or AS before a column's name"),
    ("SELECT temp FORM sensors ONCE", "FORM",
     "unexpected 'FORM' at column 13: did you mean FROM? expected a comma, FROM, or AS before a column's name"),
    ("SELECT temp FROM sensors WERE temp > 3 ONCE", "temp",
     "unexpected 'temp' at column 31: did you mean WHERE for 'WERE'? expected a comma, ONCE, SAMPLE PERIOD or WHERE"),
    ("SELECT temp FROM sensors SAMPLING PERIOD 5 s", "PERIOD",
     "unexpected 'PERIOD' at column 35: did you mean SAMPLE for 'SAMPLING'? expected a comma, ONCE, SAMPLE PERIOD or WHERE"),
    ("SELECT temp t SAMPLE PERIOD 5 s", "t",
     "unexpected 't' at column 13: expected a comma, FROM, or AS before a column's name"),
    ("SELECT temp FROM sensors WHERE (temp > 3 ONCE", "ONCE", "unexpected 'ONCE' at column 42: expected )"),
    ("SELECT temp FROM sensors WHERE 1 < temp < 3 ONCE", "<",
     "unexpected '<' at column 41: comparisons do not chain: join two with AND"),
    ("SELECT temp FROM sensors WHERE temp > 'hot' ONCE", "'hot'",
     "'hot' is a text, and temp is a number at column 39: numbers stand without marks, as in temp = 25"),
    ("SELECT temp FROM sensors WHERE temp > 'hot ONCE", "'",
     """unexpected "'" at column 39: a text ends with ', too, as in p.plot = 'north'"""),
    ("SELECT temp FROM sensors WHERE 'hot' = 'cold' ONCE", "'hot' = 'cold'",
     "both sides are texts that stand in the query at column 32: compare a column of a table with it, as in p.plot = 'north'"),
    ("SELECT temp FROM sensors WHERE temp LIKE '2%' ONCE", "temp", "temp is no text at column 32: LIKE is of texts"),
    ("SELECT temp FROM sensors WHERE temp LIKE 2 ONCE", "2", "unexpected '2' at column 42: expected a text"),
    ("SELECT temp + 'hot' FROM sensors ONCE", "'hot'",
     "'hot' is a text, which no column of motes is at column 15: compare a column of a table with it, as in p.plot = 'north'"),
    ("SELECT temp FROM sensors WHERE time > 'noon' SAMPLE PERIOD 1 s", "'noon'",
     "'noon' is no moment at column 39: "
     "write it as '2026-05-01', '2026-05-01 12:30' or '2026-05-01T12:30:00+02:00'; without a zone it is UTC"),
    *((f"SELECT {written} FROM sensors ONCE", written, f"unknown attribute '{written}' at column 8: did you mean '{meant}'? "
       "attributes are nodeid, parent, level, epoch, light, temp, humidity, voltage, accel_x, accel_y, xpos, ypos, free_ram, queue_length")
      for written, meant in (("battery", "voltage"), ("Lux", "light"), ("rssi", "link"), ("hops", "level"), ("mote", "nodeid"))),
    ("SELECT temp FROM sensors WHERE temp BETWEEN 15 20", "20",
     "unexpected '20' at column 48: expected AND between the bounds, as in BETWEEN 15 AND 20"),
    ("SELECT temp FROM sensors WHERE temp BETWEEN 15, 20", ",",
     "unexpected ',' at column 47: expected AND between the bounds, as in BETWEEN 15 AND 20"),
    ("SELECT temp FROM sensors WHERE temp BETWEEN 15 degC 20 degC", "20",
     "unexpected '20' at column 53: expected AND between the bounds, as in BETWEEN 15 AND 20"),
    ("SELECT temp FROM sensors WHERE temp BETWEEN 15 TO 20", "20",
     "unexpected '20' at column 51: expected AND between the bounds, as in BETWEEN 15 AND 20"),
    ("SELECT temp FROM sensors WHERE temp BETWEEN 15", " ",
     "the query ends too early at column 47: expected AND between the bounds, as in BETWEEN 15 AND 20"),
    # as in other languages
    ("SELECT temp FROM sensors join places ONCE", "ONCE", "unexpected 'ONCE' at column 38: expected ON"),
    ("SELECT s.temp FROM sensors s FULL JOIN p ON p.node = s.nodeid ONCE", "FULL JOIN",
     "FULL JOIN is no join here at column 30: joins are JOIN, LEFT JOIN and ASOF JOIN, each with ON"),
    ("SELECT s.temp FROM sensors s LEFT JOIN p ON p.node = s.nodeid ONCE", "LEFT JOIN p ON p.node = s.nodeid",
     "LEFT JOIN is for joins of streams at column 30: only tables that CREATE SENSORS made, which SHOW SENSORS lists, and sensors "
     "are joined within windows"),
    ("SELECT DISTINCT room FROM sensors ONCE", "DISTINCT",
     "unexpected 'DISTINCT' at column 8: GROUP BY gives a row for each value, and COUNT(DISTINCT a) their number"),
    ("SELECT temp ONCE; SELECT light ONCE", "SELECT", "unexpected 'SELECT' at column 19: one statement at a time"),
    ("SELECT temp /* °C */ ONCE", "*", "unexpected '*' at column 14: a comment begins with --, and ends with its line"),
    ("/* °C */ SELECT temp ONCE", "/", "unexpected '/' at column 1: a comment begins with --, and ends with its line"),
    ("SELECT temp WHERE temp > 25,5 ONCE", ",",
     "unexpected ',' at column 28: decimal places stand behind a point, as in 25.5"),
    ("SELECT temp WHERE temp > 2 && light > 3 ONCE", "&", "unexpected '&' at column 28: write AND"),
    ("SELECT temp WHERE temp > 2 || light > 3 ONCE", "|", "unexpected '|' at column 28: write OR"),
    ("SELECT temp WHERE !(temp > 2) ONCE", "!", "unexpected '!' at column 19: write NOT"),
    ("SELECT temp WHERE temp ≥ 25 ONCE", "≥", "unexpected '≥' at column 24: write >="),
    ("SELECT temp WHERE temp > −5 ONCE", "−", "unexpected '−' at column 26: write -"),
    ("SELECT temp WHERE room = “3” ONCE", "“", "unexpected '“' at column 26: "
     'names stand without marks, or in straight ones, as in p."room name"'),
    ("SELECT temp WHERE room = ‘3’ ONCE", "‘", "unexpected '‘' at column 26: "
     "texts stand in straight quotation marks, as in p.plot = 'north'"),
    ("SELECT temp WHERE humidity > 50 % ONCE", "ONCE",
     "unexpected 'ONCE' at column 35: % is for remainders: a relative humidity is written 50 %RH, or 50"),
    ("SELECT `temp` ONCE", "`", 'unexpected \'`\' at column 8: names stand without marks, or in straight ones, as in p."room name"'),
    ("SELECT [temp] ONCE", "[", 'unexpected \'[\' at column 8: names stand without marks, or in straight ones, as in p."room name"'),
    ('SELECT temp AS "T ONCE', '"', "unexpected '\"' at column 16: "
     'a name that begins with a quotation mark ends with one, as in p."room name"'),
    ("SELECT temp AS température ONCE", "é", "unexpected 'é' at column 20: names are made of the letters A to Z, digits and _"),
    ("SELECT 1.2.3 FROM sensors ONCE", "1",
     "unexpected '1' at column 8: this is no number: write 25.5 or 2.55e1"),
    ("SELECT 1e30 FROM sensors ONCE", "1e30",
     "the number 1e30 is out of range at column 8: numbers have at most 18 digits"),
    ("SELECT 1e99999999999999999999 FROM sensors ONCE", "1e99999999999999999999",
     "the number 1e99999999999999999999 is out of range at column 8: numbers have at most 18 digits"),
    ("SELECT temp FROM sensors WHERE temp > 1e-99999999999999999999 ONCE", "1e-99999999999999999999",
     "the number 1e-99999999999999999999 is out of range at column 39: numbers have at most 18 digits"),
    ("SELECT xpos*xpos*xpos FROM sensors ONCE", "xpos*xpos*xpos",
     "the value may reach 4e26 at column 8: the gateway computes with 18 digits: scale it down"),
    ("SELECT nodeid WHERE xpos < 999999999999999999 km ONCE", "999999999999999999 km",
     "the value may reach 9e20 at column 28: the gateway computes with 18 digits: scale it down"),
    ("SELECT AVG(xpos) SAMPLE PERIOD 9 s APPROXIMATE WITHIN 99999999999999999 km", "99999999999999999 km",
     "the value may reach 9e19 at column 55: the gateway computes with 18 digits: scale it down"),
    ("STOP QUERY 1.5", "1.5",
     "'1.5' is no query id at column 12: STOP QUERY takes a whole number"),
    ("SELECT temp\nFROM sensors\nWHERE tmep > 3 ONCE", "tmep",
     f"unknown attribute 'tmep' at line 3, column 7: did you mean 'temp'? {ATTRIBUTES}"),
    # the rest of the language
    ("SELECT temp, AVG(light) FROM sensors GROUP BY level SAMPLE PERIOD 1 s", "temp",
     "'temp' has one value for each mote, and an aggregate one for each group at column 8: "
     "name it in GROUP BY, or ask for them in two queries"),
    ("SELECT AVG(light) FROM sensors GROUP BY MAX(level) SAMPLE PERIOD 1 s", "MAX(level)",
     "MAX cannot be grouped by: a group is known before it is aggregated at column 41"),
    ("SELECT COUNT(*) FROM sensors GROUP BY xpos * 30 SAMPLE PERIOD 1 s", "xpos * 30",
     "this cannot be grouped by at column 39: groups are told apart by motes, and "
     "xpos * 30 may need more than a mote's 32 bits"),
    ("SELECT light >> temp ONCE", "temp",
     ">> needs a whole number from 0 to 30, not temp at column 17: write light >> 3"),
    ("SELECT WINAVG(temp, 3 MIN) SAMPLE PERIOD 2 S", "3 MIN",
     "WINAVG's 3 MIN are 90 rows at column 21: a window has at most 64, which are 128 s at this sample period"),
    ("SELECT AVG(temp, light) ONCE", "light",
     "AVG takes one argument at column 18: write AVG(temp), or AVG(temp, 5 min) for the last 5 min"),
    ("ON ALIGNED EVENT every(10 s) SELECT temp SAMPLE PERIOD 1 s FOR 3 s", "every(10 s)",
     "a timer has no event to be aligned with at column 18: leave ALIGNED out: it begins at multiples of its time"),
    ("SELECT temp WHERE temp == 3 ONCE", "=",
     "unexpected '=' at column 25: comparisons are = <> != < <= > >="),
    ("SELECT COUNT(DISTINCT *) ONCE", "COUNT(DISTINCT *)",
     "COUNT(DISTINCT *) has no meaning at column 8: write COUNT(*), or COUNT(DISTINCT temp)"),
    ("SELECT temp >> 3 ONCE", "temp", ">> is of whole numbers at column 8: divide instead: it has decimal places"),
    ("SELECT temp FROM sensors SAMPLE PERIOD 1 s STOP ON WHERE temp > 3", "WHERE",
     "unexpected 'WHERE' at column 52: expected EVENT or a name"),
    ("ON EVENT a(nodeid) OR b(nodeid) SELECT temp WHERE a.nodeid = 3 ONCE", "a.nodeid",
     "'a' is one of several events at column 51: write event.nodeid: it is of the event that came last"),
    ("SELECT temp FROM sensors AS s WHERE s.loc = 3 ONCE", "s.loc",
     "'loc' is a position, not a number at column 37: "
     "write xpos or ypos, or the distance from another, as in dist(loc, point(3 m, 4 m))"),
    ("ON EVENT hot SELECT event.loc + 1 ONCE", "event.loc",
     "'loc' is a position, not a number at column 21: "
     "write xpos or ypos, or the distance from another, as in dist(loc, point(3 m, 4 m))"),
    ("SELECT temp WHERE loc < 3 ONCE", "loc",
     "'loc' is a position, not a number at column 19: "
     "write xpos or ypos, or the distance from another, as in dist(loc, point(3 m, 4 m))"),
    ("SELECT point(3 m, 4 m) ONCE", "point(3 m, 4 m)",
     "a point is a position, not a number at column 8: write the distance from it, as in dist(loc, point(3 m, 4 m))"),
    ("SELECT room, AVG(temp) AS mean GROUP BY room HAVING Mean > 3 SAMPLE PERIOD 2 s", "Mean",
     "unknown attribute 'Mean' at column 53: it is what a column is called: write AVG(temp) here, too"),
    ("SELECT light > 100 AS bright, COUNT(*) GROUP BY bright SAMPLE PERIOD 2 s", "bright",
     "unknown attribute 'bright' at column 49: it is what a column is called: write light > 100 here, too"),
    ("SELECT temp FROM sensors, points ONCE", "points",
     "unknown table 'points' at column 27: tables are sensors and storage points, of which there are none; "
     "CSV, Parquet and SQLite files belong into the gateway's directory of tables, which 'skerry tables' names"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("query", "guess"),
    [
        ("SELECT temp FROM sensors ONEC", "did you mean ONCE for 'ONEC'? expected ONCE"),
        ("SELECT temp FROM sensors SAMPLE PERIOD 10 s FORR", "did you mean FOR? "),
        ("SELECT temp FROM sensors WHERE temp > 3 ADN light > 3 ONCE", "did you mean AND for 'ADN'? "),
        ("SELECT temp FROM sensors WHERE temp IS NUL ONCE", "did you mean NULL? "),
        ("SELECT AVG(temp) FROM sensors GRUOP BY level ONCE", "did you mean GROUP for 'GRUOP'? "),
        ("SELECT temp FROM sensors HISTORY 1 h ONYL", "did you mean ONLY? "),
        ("SELECT temp FROM sensors ORDER BY temp DECS HISTORY 1 h ONLY", "did you mean DESC? "),
        ("SELECT temp FROM sensors SAMPLE PEROID 10 s", ": expected PERIOD"),
        ("SELECT temp FROM sensors ONEC;", "did you mean ONCE for 'ONEC'? expected ONCE"),
        ("SELECT MEDIAN(temp, 5 min) FROM sensors SAMPLE PERIOD 10 s", "windows are of COUNT, SUM, AVG, MIN, MAX"),
    ],
)  # fmt: skip
def test_a_guess_at_what_is_misspelt(query: str, guess: str) -> None:
    with pytest.raises(QueryError) as raised:
        plan_query(query)
    assert guess in raised.value.summary


@pytest.mark.parametrize(("query", "marked", "message"), REFUSED, ids=[query for query, _, _ in REFUSED])
def test_refusal(query: str, marked: str | None, message: str) -> None:
    with pytest.raises(QueryError) as raised:
        plan_query(query)
    error = raised.value
    assert error.summary == message
    lines = str(error).split("\n")
    if marked is None:
        assert lines == [message]
        return
    assert lines[0] == message
    assert lines[1][2:] in query.split("\n")
    start = lines[2].index("^")
    assert (lines[1] + " ")[start : start + lines[2].count("^")] == marked
    assert error.to_dict()["column"] == start - 1


def test_query_too_large_for_a_mote() -> None:
    """Motes act on the rows that pass a condition, so that they have to ask all of it."""
    condition = " OR ".join(f"temp * {i} > 1" for i in range(1, 41))
    with pytest.raises(QueryError) as raised:
        plan_query(f"SELECT temp FROM sensors WHERE {condition} OUTPUT ACTION leds(1) SAMPLE PERIOD 1 s")
    assert raised.value.summary == (
        "query too large for a mote: 423 bytes, limit 192; 1 columns, limit 12: "
        "shorten the condition or ask for less at once"
    )


def test_too_many_aggregates() -> None:
    fields = ", ".join(f"MAX(temp + {i})" for i in range(13))
    with pytest.raises(QueryError, match=r"these aggregates need 13 cells .* a partial state has 12"):
        plan_query(f"SELECT {fields} FROM sensors SAMPLE PERIOD 1 s")


@pytest.mark.parametrize(
    "nested", ["(" * 5000 + "temp" + ")" * 5000, "temp" + " + temp" * 20000, "- " * 5000 + "temp"]
)
def test_nesting_without_end_is_refused(nested: str) -> None:
    with pytest.raises(QueryError, match="nested too deeply"):
        plan_query(f"SELECT {nested} FROM sensors ONCE")


@pytest.mark.parametrize(
    ("within", "behind"), [("temp", " + light"), ("- ", "temp"), ("temp + (", "temp)")], ids=["left", "minus", "right"]
)  # fmt: skip
def test_what_is_not_refused_for_its_nesting_can_be_explained(within: str, behind: str) -> None:
    """Whoever plans a query has some stack left; others who walk through it may have less."""

    def nested(times: int) -> str:
        if within == "temp":
            return within + behind * times
        return within * times + behind.removesuffix(")") + ")" * times * behind.endswith(")")

    with pytest.raises(
        QueryError, match="nested too deeply: 250 operators stand within each other: at most 100"
    ):
        plan_query(f"SELECT {nested(250)} AS x FROM sensors SAMPLE PERIOD 1 s")
    with pytest.raises(QueryError, match="nested too deeply: 101 operators"):
        plan_query(f"SELECT {nested(101)} AS x FROM sensors SAMPLE PERIOD 1 s")
    plan = plan_query(f"SELECT {nested(100)} AS x FROM sensors SAMPLE PERIOD 1 s")
    assert isinstance(plan, QueryPlan)
    assert f"x = {render(plan.outputs[0].expr)}" in explain_text(explain(plan))


def test_a_query_id_of_more_digits_than_python_takes_for_a_number() -> None:
    with pytest.raises(QueryError, match="9 is out of range at column 12: numbers have at most 18 digits"):
        plan_query(f"STOP QUERY {'9' * 5000}")
