"""Compares the live page with the status document, field by field."""

FIELDS = """Object.fromEntries([...document.querySelectorAll('[data-field]')].map(
    e => [e.dataset.field, {value: e.getAttribute('value'), text: e.textContent, format: e.dataset.format || 'text', scale: e.dataset.scale,
        decimals: e.dataset.decimals}]))"""


def find(document, path):
    for key in path.split("."):
        if document is None:
            return None
        if isinstance(document, list):
            document = document[int(key)] if int(key) < len(document) else None
        else:
            document = document.get(key)
    return document


def number_of(text):
    """The value of a number written for people: 1,234.5, 12.35 k, 1.5 MB, 3 ms, 0.125%."""
    if text.endswith("%"):
        return float(text[:-1]) / 100
    number, _, unit = text.replace(",", "").partition(" ")
    prefix = unit.removesuffix("B") if unit not in ("ms", "mm", "MBq") else ""
    return float(number) * {"": 1, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}[prefix]


def compare(test, fields, status):
    """Compares all fields of a page with its status document. Returns their number."""
    compared = 0
    for name, shown in fields.items():
        if name.startswith("page."):
            continue
        with test.subTest(field=name):
            value = find(status, name.replace(".name", ".id") if name.startswith("sources.") else name)
            if value is None or value == "":
                test.assertEqual((shown["value"], shown["text"]), ("", "–"))
            elif isinstance(value, bool):
                test.assertEqual(shown["text"], "yes" if value else "no")
            elif isinstance(value, (int, float)):
                test.assertEqual(float(shown["value"]), value)
                if shown.get("scale"):  # one unit and as many decimals for all of its column
                    unit, step = float(shown["scale"]), 10 ** -int(shown["decimals"])
                    test.assertAlmostEqual(number_of(shown["text"]) * unit, value, delta=0.501 * step * unit)
                elif shown["format"] == "duration":
                    test.assertRegex(shown["text"], r"^\d+ (s|min \d+ s|h \d+ min|d \d+ h)$")
                elif shown["format"] == "about":
                    amount, unit = shown["text"].split(" ")
                    seconds = float(amount.replace(",", "")) * {"s": 1, "min": 60, "h": 3600, "d": 86400}[unit]
                    test.assertAlmostEqual(seconds, value, delta=value * 6e-3)
                else:
                    test.assertAlmostEqual(number_of(shown["text"]), value, delta=abs(value) * 6e-3 + 1e-9)
            elif shown["format"] == "utc":
                test.assertEqual((shown["value"], shown["text"]), (value, f"{value[:10]} {value[11:19]} UTC"))
            elif shown["format"] == "keys":
                test.assertEqual(shown["text"], ", ".join(f"{key}: {text}" for key, text in value.items()))
            else:
                test.assertEqual(shown["text"], value)
        compared += 1
    return compared
