# SPDX-License-Identifier: Apache-2.0
"""Doxygen's input filter: a header on its way to the reference, with comments as Doxygen wants them.

The headers are written for people who read them, without commands of Doxygen. A comment at the top becomes the
introduction of the header's group; one before a declaration, or behind one, becomes its text; one that stands alone is
added to the introduction. Lines that are indented are kept as they are, since they are tables or code.
"""
import re
import sys
import textwrap

TOKEN = re.compile(r'/\*.*?\*/|"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|[{}]', re.DOTALL)


def lines_of(comment):
    body = comment[2:-2].strip("\n")
    lines = [re.sub(r"^\s*\* ?", "", line).rstrip() for line in body.split("\n")]
    lines[0] = lines[0].strip()
    return lines


def plain(text):
    """Words without a meaning to Doxygen, and code as code."""
    text = re.sub(r"([\\@<>&#%$\"])", r"\\\1", text).replace("::", "\\::").replace("--", "\\--")
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", text)


def paragraphs(lines):
    """For each paragraph its text, as it is or filled; an indented line makes what it stands in a picture of itself."""
    out, part = [], []

    def end():
        if any(line.startswith("  ") for line in part):
            first = next(i for i, line in enumerate(part) if re.search(r"^  |[^.]   ", line))
            if first > 0:
                out.append(plain(" ".join(part[:first])))
            out.append("\\verbatim\n" + textwrap.dedent("\n".join(part[first:])) + "\n\\endverbatim")
        elif part:
            out.append(plain(" ".join(part)))
        part.clear()

    for line in lines:
        if line.strip():
            part.append(line)
        else:
            end()
    end()
    return out


def block(comment, begin=""):
    return "/** " + begin + "\n\n".join(paragraphs(lines_of(comment))) + "\n*/"


def member(comment):
    return "/**< " + plain(" ".join(line.strip() for line in lines_of(comment))) + " */"


def before_line(out, text):
    """A struct's comment stands behind its brace; Doxygen wants it before the line."""
    so_far = "".join(out)
    at = so_far.rfind("\n") + 1
    return [so_far[:at], text, "\n", so_far[at:]]


def introduction(comment, group, title):
    lines = [line for line in lines_of(comment) if not line.startswith("SPDX")]
    text = paragraphs(lines)
    brief, *rest = re.split(r"(?<=\.) ", text[0], maxsplit=1)
    text = rest + text[1:]
    return (f"/** \\file\n\\brief {brief}\n*/\n/** \\defgroup {group} {title}\n\\brief {brief}\n\n" +
            "\n\n".join(text) + f"\n*/\n/** \\addtogroup {group}\n@{{ */")


def is_body(before):
    """Does a brace behind this text open a function?"""
    return before.rstrip().endswith(")")


def place(text, start, end, stack):
    """Where a comment stands: inside code, behind a declaration or the brace that opens one, before one, or alone."""
    before = text[text.rfind("\n", 0, start) + 1:start].strip()
    after = text[end:]
    if "body" in stack:
        return "code"
    if before:
        if after[:after.find("\n")].strip() or before.endswith("\\"):
            return "code"
        return "opens" if before.endswith("{") else "behind"
    if stack and stack[-1] == "enum":
        return "code"
    following = after.split("\n", 2)[1] if "\n" in after else ""
    is_alone = not following.strip() or following.startswith(("#ifdef __cplusplus", "#endif", "/*"))
    return "alone" if is_alone and not stack else "before"


def convert(text, group, title):
    out, alone, at, stack, is_first = [], [], 0, [], True
    for token in TOKEN.finditer(text):
        word = token.group(0)
        out.append(text[at:token.start()])
        at = token.end()
        if word == "{":
            before = text[:token.start()]
            head = re.split(r"[;}]", before)[-1]
            stack.append("body" if is_body(before) else "enum" if re.search(r"\benum\b", head) else "open")
            if re.search(r'extern "C"\s*$', before):
                stack.pop()
        elif word == "}":
            if stack:
                stack.pop()
        elif word.startswith("/*"):
            where = place(text, token.start(), token.end(), stack)
            if is_first:
                word = introduction(word, group, title)
                is_first = False
            elif re.match(r"/\* (-{3,}|clang-format)", word):
                pass
            elif where == "behind":
                word = member(word)
            elif where == "opens":
                out, word = before_line(out, block(word)), ""
            elif where == "before":
                word = block(word)
            elif where == "alone":
                alone.append(block(word, f"\\addtogroup {group}\n\\details\n"))
                word = ""
        out.append(word)
    out.append(text[at:])
    return "".join(out) + "\n/** @} */\n" + "\n".join(alone) + "\n"


def main():
    path = sys.argv[1]
    with open(path, encoding="utf-8") as file:
        text = file.read()
    if not path.endswith(".h"):
        sys.stdout.write(text)
        return
    name = path.replace("\\", "/").split("include/dtrain/", 1)[-1]
    group = "dtrain_" + re.sub(r"[^a-z0-9]", "_", name[:-2])
    sys.stdout.write(convert(text, group, "dtrain/" + name))


main()
