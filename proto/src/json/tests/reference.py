"""Writes reference.json: what Google's protobuf for Python makes of a list of JSON texts.

    pip install grpcio-tools && python reference.py

For each text: `wire` is the message in hexadecimal digits and `out` its canonical JSON; a text that is
refused has neither. Run it again after adding a text; the test beside it reads the result.
"""

import json
import pathlib
import sys
import tempfile

from google.protobuf import json_format
from grpc_tools import protoc
import grpc_tools

HERE = pathlib.Path(__file__).parent

SCALARS = ["aBool", "anInt32", "anInt64", "aUint32", "aUint64", "aSint32", "aSint64", "aFixed32",
           "aFixed64", "aSfixed32", "aSfixed64", "aFloat", "aDouble", "aString", "aBytes", "aColor"]
VALUES = ["true", "false", "null", "0", "-0", "1", "-1", "0.5", "1.0", "1e2", "1e-2", "1E2", "-1e400",
          "2147483647", "2147483648", "-2147483648", "-2147483649", "4294967295", "4294967296",
          "9223372036854775807", "9223372036854775808", "-9223372036854775808", "18446744073709551615",
          "18446744073709551616", "3.4028235e38", "3.5e38", "1e39", "1e308", "1e-320",
          '""', '"0"', '"1"', '"-1"', '"1.0"', '"0.5"', '"1e2"', '" 1"', '"1 "', '"+1"', '"01"', '"0x1"',
          '"true"', '"NaN"', '"nan"', '"Infinity"', '"-Infinity"', '"inf"', '"1_000"', '"AQ=="', '"AQ"',
          '"-_8="', '"+/8="', '"COLOR_RED"', '"color_red"', '"COLOR_GREEN"', '"\\u0000"', '"\\ud83d\\ude00"',
          "[]", "{}", "[1]", '{"a":1}']

TIMES = ["1970-01-01T00:00:00Z", "1969-12-31T23:59:59.999Z", "0001-01-01T00:00:00Z",
         "9999-12-31T23:59:59.999999999Z", "2024-02-29T12:00:00Z", "2023-02-29T12:00:00Z",
         "2026-01-31T12:00:00+00:00", "2026-01-31T12:00:00-23:59", "2026-01-31T12:00:00.1Z",
         "2026-01-31T12:00:00.123456789Z", "2026-01-31T12:00:00.1234567891Z", "2026-01-31T24:00:00Z",
         "2026-01-31T12:60:00Z", "2026-01-31T12:00:60Z", "2026-01-31T12:00:00", "2026-01-31",
         "2026-1-31T12:00:00Z", "10000-01-01T00:00:00Z", "0000-01-01T00:00:00Z", "now", "",
         "2026-01-31t12:00:00z", "2026-01-31 12:00:00Z", "2026-01-31T12:00:00.Z", "2026-01-31T12:00:00Z "]

DURATIONS = ["0s", "1s", "-1s", "1.5s", "-0.5s", "0.000000001s", "-0.000000001s", "0.0000000001s",
             "315576000000s", "315576000001s", "-315576000000s", "-315576000001s", "1", "s", "", "1.s", ".5s",
             "1m", "--1s", "+1s", "1e3s", " 1s", "1s ", "1.5"]

OTHERS = r"""
{}
[]
null
"x"
1
{"unknown":1}
{"a_bool":true}
{"aBool":true,"a_bool":true}
{"aBool":true,"aBool":false}
{"child":{"unknown":1}}
{"child":{}}
{"child":null}
{"child":[]}
{"child":{"child":{"anInt32":5}}}
{"maybeBool":false}
{"maybeBool":null}
{"maybeInt64":"0"}
{"maybeString":""}
{"maybeColor":0}
{"maybeColor":"COLOR_NONE"}
{"int32s":[]}
{"int32s":null}
{"int32s":[1,"2",3.0]}
{"int32s":[null]}
{"int32s":[1,true]}
{"int32s":{"a":1}}
{"int32s":5}
{"sint64s":["-1",1,0]}
{"doubles":[1,"NaN",-0.0,"Infinity"]}
{"strings":["","a"]}
{"strings":[1]}
{"colors":["COLOR_RED",2,-1,77]}
{"colors":["COLOR_GREEN"]}
{"children":[{},{"aBool":true}]}
{"children":[null]}
{"children":{}}
{"unpacked":[1,2,3]}
{"fixed32s":[4294967295]}
{"byString":{}}
{"byString":null}
{"byString":{"":"","a":"b"}}
{"byString":{"a":null}}
{"byString":{"a":1}}
{"byString":[]}
{"byInt32":{"1":{"aBool":true},"-2147483648":{}}}
{"byInt32":{"2147483648":{}}}
{"byInt32":{"1.0":{}}}
{"byInt32":{"":{}}}
{"byInt32":{"a":{}}}
{"byBool":{"true":"1","false":2}}
{"byBool":{"True":1}}
{"byBool":{"1":1}}
{"byInt64":{"9223372036854775807":"COLOR_RED"}}
{"byInt64":{"1":"COLOR_GREEN"}}
{"byInt64":{"1":77}}
{"valuesByString":{"a":null,"b":[1,null,{"c":"d"}]}}
{"text":"a"}
{"text":""}
{"number":0}
{"text":"a","number":1}
{"text":null,"number":1}
{"message":{}}
{"value":null}
{"value":5}
{"mask":""}
{"mask":"aBool"}
{"mask":"aBool,child.anInt32"}
{"mask":"a_bool"}
{"mask":1}
{"anyObject":{}}
{"anyObject":null}
{"anyObject":{"a":null,"b":true,"c":1.5,"d":"x","e":[],"f":{"g":[{}]}}}
{"anyObject":[]}
{"anyObject":"x"}
{"anyValue":null}
{"anyValue":true}
{"anyValue":-1.5}
{"anyValue":"x"}
{"anyValue":[null]}
{"anyValue":{"a":{}}}
{"anyList":[]}
{"anyList":null}
{"anyList":[null,1,"x",[],{}]}
{"anyList":{}}
{"anyValues":[null,null]}
{"boolWrapper":true}
{"boolWrapper":false}
{"boolWrapper":null}
{"boolWrapper":"true"}
{"int64Wrapper":"0"}
{"int64Wrapper":0}
{"int64Wrapper":"x"}
{"stringWrapper":""}
{"stringWrapper":1}
{"doubleWrapper":"NaN"}
{"doubleWrapper":0}
{"bytesWrapper":""}
{"bytesWrapper":"AQI="}
{"bytesWrapper":"!"}
{"times":["1970-01-01T00:00:00Z",null]}
{"aString":"\ud83d"}
{"aString":"\u00e9\u4e2d\n\t\"\\\/"}
{"aBool":true,}
{"aBool":tru}
{'aBool':true}
{"aDouble":01}
{"aDouble":.5}
{"aDouble":1.}
{"aDouble":+1}
{"aDouble":NaN}
{"aDouble":Infinity}
{"aBool":true}{}
{"aBool":true} x
{
"""


def texts():
    for field in SCALARS:
        for value in VALUES:
            yield f'{{"{field}":{value}}}'
    yield from (json.dumps({"time": time}, separators=(",", ":")) for time in TIMES)
    yield from (json.dumps({"duration": it}, separators=(",", ":")) for it in DURATIONS)
    yield from (line for line in OTHERS.splitlines() if line)


def kinds():
    with tempfile.TemporaryDirectory() as folder:
        include = pathlib.Path(grpc_tools.__file__).parent / "_proto"
        arguments = ["", f"-I{HERE}", f"-I{include}", f"--python_out={folder}", "kinds.proto"]
        if protoc.main(arguments):
            sys.exit("kinds.proto does not compile")
        sys.path.insert(0, folder)
        import kinds_pb2
        return kinds_pb2.Kinds


def case(make, text):
    message = make()
    try:
        json_format.Parse(text, message)
    except Exception:  # whatever it is refused with
        return {"json": text}
    out = json_format.MessageToJson(message, indent=None, ensure_ascii=False)
    wire = message.SerializeToString(deterministic=True).hex()
    return {"json": text, "wire": wire, "out": out}


if __name__ == "__main__":
    make = kinds()
    lines = ",\n".join(json.dumps(case(make, text), ensure_ascii=False) for text in texts())
    (HERE / "reference.json").write_text(f"[\n{lines}\n]\n")
