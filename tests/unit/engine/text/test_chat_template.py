"""Chat templates: what real ones need, and what none may do."""

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from engine.errors import InvalidRequest, ModelLoadError
from engine.text.chat_template import ChatTemplate
from engine.text.control_tokens import GUARD
from engine.text.template_limits import TemplateLimits
from engine.text.template_sandbox import TemplateSandbox

MESSAGES: list[dict[str, Any]] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "héllo <b>"},
]
TOOLS = [{"type": "function", "function": {"name": "find", "parameters": {"é": [1, 2.5, None]}}}]


def render(
    source: str,
    messages: list[dict[str, Any]] = MESSAGES,
    *,
    tools: list[dict[str, Any]] | None = None,
    **options: Any,
) -> str:
    template = ChatTemplate({"default": source}, **options)
    return template.render(messages, add_generation_prompt=True, tools=tools)


def refusal(source: str, **options: Any) -> str:
    with pytest.raises(InvalidRequest) as caught:
        render(source, **options)
    assert caught.value.param == "messages"
    return str(caught.value)


class TestWhatTemplatesUse:
    @pytest.mark.parametrize(
        ("source", "expected"),
        [
            ("{% for m in messages %}\n{{ m.role }}\n{% endfor %}", "system\nuser\n"),
            ("  {% if true %}\n  a\n  {% endif %}", "  a\n"),
            ("{{ messages[1]['content'] | trim | upper }}", "HÉLLO <B>"),
            ("{{ messages | length }}{{ messages[0].content | first }}", "2B"),
            ("{{ messages[1:] | map(attribute='role') | join(', ') }}", "user"),
            ("{{ messages | selectattr('role', 'equalto', 'user') | list | count }}", "1"),
            ("{{ messages | rejectattr('role', 'equalto', 'user') | list | length }}", "1"),
            ("{{ tools | tojson }}", json.dumps(TOOLS, ensure_ascii=False)),
            ("{{ tools | tojson(indent=2) }}", json.dumps(TOOLS, ensure_ascii=False, indent=2)),
            ("{{ '<é>' | tojson }}{{ '<é>' | tojson(ensure_ascii=true) }}", '"<é>""<\\u00e9>"'),
            ("{% if add_generation_prompt %}go{% endif %}", "go"),
            ("{{ bos_token }}{{ eos_token }}{{ unk_token }}", "<s></s>"),
            ("{% set ns = namespace(n=0) %}{% for m in messages %}{% set ns.n = ns.n + 1 %}"
             "{% endfor %}{{ ns.n }}", "2"),
            ("{% for m in messages %}{{ loop.index }}{{ loop.last }}{{ loop.length }},{% endfor %}",
             "1False2,2True2,"),
            ("{% for m in messages if m.role == 'user' %}{{ loop.first }}{% endfor %}", "True"),
            ("{% for m in messages %}{{ loop.previtem is defined }}{% endfor %}", "FalseTrue"),
            ("{% for x in range(9) %}{% if x == 2 %}{% break %}{% endif %}{% if x == 0 %}"
             "{% continue %}{% endif %}{{ x }}{% endfor %}", "1"),
            ("{% for m in messages %}{{ loop.cycle('a', 'b') }}{% else %}none{% endfor %}", "ab"),
            ("{% for m in [] %}{% else %}none{% endfor %}", "none"),
            ("{% for k, v in messages[0].items() %}{{ k }}={{ v }};{% endfor %}",
             "role=system;content=Be brief.;"),
            ("{% for k, v in messages[0] | dictsort %}{{ k }};{% endfor %}", "content;role;"),
            ("{% macro f(x, y=0) %}{{ y }}{{ x }}{% endmacro %}{{ f(1) }}{{ f(2, y=3) }}", "0132"),
            ("{% macro f() %}[{{ caller() }}]{% endmacro %}{% call f() %}in{% endcall %}", "[in]"),
            ("{% set x %}a{{ 1 }}{% endset %}{{ x ~ '-' ~ 2 ~ none }}", "a1-2None"),
            ("{{ 'a' + 'b' * 3 }}{{ 7 // 2 }}{{ 7 % 4 }}{{ 2 ** 5 }}", "abbb3332"),
            ("{{ [1] + [2] }}{{ 7 - 9 }}{{ 1 / 4 }}", "[1, 2]-20.25"),
            ("{{ 'a,b'.split(',')[1] }}{{ ' x '.strip() }}{{ 'ab'.replace('a', 'c') }}", "bxcb"),
            ("{{ 'ab'.startswith('a') }}{{ '-'.join(['a', 'b']) }}", "Truea-b"),
            ("{{ messages[0].get('x', 'd') }}{{ messages[0].x is defined }}", "dFalse"),
            ("{{ 'x' in 'xyz' and messages[0].content is string }}", "True"),
            ("{{ 3.14159 | round(2) }}{{ '5' | int + 1 }}{{ [1, 2] | sum }}", "3.1463"),
            ("{{ 'a\nb' | indent(2) }}{{ ['b', 'a'] | sort | join }}", "a\n  bab"),
            ("{{ x | default('d') }}{{ none | default('e', true) }}", "de"),
            ("{% generation %}{{ messages[0].role }}{% endgeneration %}", "system"),
            ("{{ dict(a=1) | tojson }}{{ {'a': [1]} }}", "{\"a\": 1}{'a': [1]}"),
            ("{{ strftime_now('%d %b %Y') }}", "05 Mar 2031"),
            ("{# a comment #}{% raw %}{{ x }}{% endraw %}", "{{ x }}"),
            ("{{ undefined_name }}", ""),
        ],
    )  # fmt: skip
    def test_it(self, source: str, expected: str) -> None:
        found = render(
            source,
            tools=TOOLS,
            tokens={"bos_token": "<s>", "eos_token": "</s>"},
            sandbox=TemplateSandbox(now=lambda: datetime(2031, 3, 5)),
        )
        assert found == expected

    def test_recursive_loops(self) -> None:
        tree = [{"n": 1, "kids": [{"n": 2, "kids": []}, {"n": 3, "kids": []}]}]
        source = (
            "{% for m in messages recursive %}{{ m.n }}{{ loop.depth }}{{ loop.length }}"
            "({{ loop(m.kids) }}){% endfor %}"
        )
        assert render(source, tree) == "111(222()322())"

    def test_content_is_not_escaped(self) -> None:
        assert render("{{ messages[1].content }}") == "héllo <b>"

    def test_a_template_may_refuse(self) -> None:
        source = "{{ raise_exception('roles must alternate') }}"
        assert "does not take this: roles must alternate" in refusal(source)


class TestEscapes:
    @pytest.mark.parametrize(
        "source",
        [
            "{{ ''.__class__ }}",
            "{{ ''['__class__'] }}",
            "{{ raise_exception.__globals__ }}{{ range.__call__ }}",
            "{{ messages | map(attribute='__class__') | list }}",
            "{{ cycler }}{{ joiner }}{{ lipsum }}{{ self.x }}",
        ],
    )
    def test_names_that_lead_out_lead_nowhere(self, source: str) -> None:
        assert render(source).replace("Undefined", "").replace(", ", "") in ("", "[]")

    @pytest.mark.parametrize(
        "source",
        [
            "{{ ''.__class__.__mro__ }}",
            "{{ messages.__init__.__globals__ }}",
            "{{ namespace.__init__.__globals__ }}",
            "{{ strftime_now.__closure__ }}{{ strftime_now.__closure__[0] }}",
            "{{ cycler.__init__.__globals__.os.popen('id') }}",
            "{{ ''.format.__self__ }}",
            "{{ '{0.__class__}'.format(1) }}",
            "{{ '{x.__class__}'.format_map({'x': 1}) }}",
            "{% set f = 'a'.format %}{{ f() }}",
            "{{ messages | attr('__class__') }}",
            "{{ messages.append(1) }}",
            "{{ messages[0].update({'a': 1}) }}",
            "{{ messages[0].pop('role') }}",
            "{% set ns = namespace(__class__=1) %}",
            "{% set ns = namespace() %}{% set ns.__class__ = 1 %}",
            "{% include '/etc/passwd' %}",
            "{% include 'x' ignore missing %}{% import '/etc/passwd' as p %}",
            "{% extends '/etc/passwd' %}",
            "{% from 'os' import system %}",
            "{{ self }}",
            "{{ loop }}{{ namespace }}",
            "{{ (1).to_bytes(8) }}",
            "{{ 'a'.encode() }}",
            "{{ 'a'.translate({97: 'b'}) }}",
            "{{ messages[0].keys().mapping }}{{ messages[0].keys().isdisjoint([]) }}",
            "{{ [].sort() }}",
        ],
    )
    def test_they_are_refused(self, source: str) -> None:
        refusal(source)

    def test_the_messages_given_stay_as_they_are(self) -> None:
        messages = [{"role": "user", "content": "x"}]
        render("{% set m = messages[0].copy() %}{{ m.role }}", messages)
        assert messages == [{"role": "user", "content": "x"}]


DOUBLE = "{{% set ns = namespace(x={start}) %}}{{% for i in range(70) %}}{step}{{% endfor %}}{end}"


class TestLimits:
    """Each of these would hang the server or fill its memory; none takes more than a moment."""

    @pytest.mark.parametrize(
        "source",
        [
            "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}",
            "{% for a in range(9999) if a %}{% for b in range(9999) %}{% endfor %}{% endfor %}",
            "{% set r = range(99999) %}{% for a in r recursive %}{{ loop(r) }}{% endfor %}",
            "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}"
            "{{ f(60) }}",
            "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
            "{{ range(10 ** 12) }}",
            "{{ range(99999999) | list }}",
            "{{ 'a' * 10 ** 12 }}",
            "{{ 10 ** 12 * 'a' }}",
            "{{ [0] * 10 ** 12 }}",
            "{{ 10 ** 10 ** 10 }}",
            "{{ 2 ** 4000 }}",
            "{{ '%1000000000000d' % 1 }}",
            "{{ '%s' % 1 }}",
            "{{ '{:1000000000000}'.format(1) }}",
            "{{ 'x'.ljust(10 ** 12) }}{{ 'x'.zfill(10 ** 12) }}",
            "{{ 'x' | center(10 ** 12) }}",
            "{{ 'x' | batch(10 ** 12, 'y') | list }}",
            "{{ '\\t'.expandtabs(10 ** 12) }}",
            "{{ ('a' * 9999) | replace('a', 'b' * 99999) }}",
            "{{ ('a' * 9999).replace('a', 'b' * 99999) }}",
            "{{ ('a' * 999999).join(['b'] * 99999) }}",
            "{{ (['b'] * 99999) | join('a' * 999999) }}",
            "{{ ('a\\n' * 999999) | indent('b' * 9999) }}",
            "{{ 2.5 | round(10 ** 9, 'ceil') }}",
            "{{ ([[0] * 9999] * 9999) | sum(start=[]) }}",
            "{{ [['a' * 9999] * 9999] }}",
            "{{ [['a' * 9999] * 9999] | tojson }}",
            "{{ [['a' * 9999] * 9999] | string | length }}",
            "{{ ([['a' * 9999] * 9999] | upper) | length }}",
            "{{ ([['a' * 9999] * 9999] ~ '') | length }}",
            "{{ strftime_now('%c' * 999999) }}",
            "{{ strftime_now('%999999999d') }}",
            "{% for i in range(9999) %}{{ 'a' * 99999 }}{% endfor %}",
            DOUBLE.format(start="'ab'", step="{% set ns.x = ns.x + ns.x %}", end=""),
            DOUBLE.format(start="'ab'", step="{% set ns.x = ns.x ~ ns.x %}", end=""),
            DOUBLE.format(start="'ab'", step="{% set y %}{{ ns.x }}{{ ns.x }}{% endset %}"
                          "{% set ns.x = y %}", end=""),
            DOUBLE.format(start="'ab'", step="{% set ns.x = [ns.x, ns.x] | join %}", end=""),
            DOUBLE.format(start="'ab'", step="{% set ns.x = ns.x.replace('a', 'aa') %}", end=""),
            DOUBLE.format(start="[1]", step="{% set ns.x = ns.x + ns.x %}", end=""),
            DOUBLE.format(start="3", step="{% set ns.x = ns.x * ns.x %}", end=""),
            DOUBLE.format(start="[1]", step="{% set ns.x = [ns.x, ns.x] %}", end="{{ ns.x }}"),
            DOUBLE.format(start="[1]", step="{% set ns.x = [ns.x] * 2 %}", end="{{ ns.x|tojson }}"),
            DOUBLE.format(start="[1]", step="{% set ns.x = [ns.x, ns.x] %}", end="{{ ns }}"),
            DOUBLE.format(start="{}", step="{% set ns.x = dict(a=ns.x, b=ns.x) %}",
                          end="{{ ns.x.values() }}"),
        ],
    )  # fmt: skip
    def test_it_ends(self, source: str) -> None:
        """By counting, not by the clock."""
        refusal(source, limits=TemplateLimits(max_seconds=1e9))

    def test_time_is_limited(self) -> None:
        loop = "{% for i in range(9) %}{% endfor %}"
        assert render(loop) == ""
        assert "too much time" in refusal(loop, limits=TemplateLimits(max_seconds=-1.0))

    def test_the_output_is_limited(self) -> None:
        limits = TemplateLimits(max_output_chars=9)
        assert render("123456789", limits=limits) == "123456789"
        assert "too long" in refusal("1234567890", limits=limits)

    def test_the_source_is_limited(self) -> None:
        assert "too long" in refusal("x" * 100, limits=TemplateLimits(max_source_chars=99))

    def test_each_rendering_has_its_own_budget(self) -> None:
        template = ChatTemplate(
            {"default": "{% for i in range(60) %}{% endfor %}"}, limits=TemplateLimits(max_steps=99)
        )
        for _ in range(3):
            assert template.render([], add_generation_prompt=False) == ""

    def test_a_long_conversation_is_well_within_them(self) -> None:
        messages = [{"role": "user", "content": "word " * 200}] * 1_000
        source = (
            "{% for m in messages %}{% if m.role == 'user' %}<|im_start|>{{ m.role ~ '\n' ~ "
            "m.content | trim + '<|im_end|>' }}{% endif %}{% endfor %}"
        )
        assert len(render(source, messages)) > 1_000_000


class TestBrokenTemplates:
    @pytest.mark.parametrize(
        "source",
        ["{% if %}", "{{ 'a", "{% for %}", "{{ x | nofilter }}", "{{" + "(" * 9_999, "{% end %}"],
    )
    def test_what_cannot_be_compiled_is_told_when_it_is_used(self, source: str) -> None:
        template = ChatTemplate({"default": source})
        assert not template.is_present
        with pytest.raises(InvalidRequest, match="cannot be used"):
            template.render(MESSAGES, add_generation_prompt=True)

    @pytest.mark.parametrize(
        "source",
        ["{{ none + 1 }}", "{{ x.y.z }}", "{{ 1 / 0 }}", "{{ messages[0](1) }}", "{{ x() }}"],
    )
    def test_what_fails_is_told(self, source: str) -> None:
        assert "failed" in refusal(source)

    def test_without_a_template(self, tmp_path: Path) -> None:
        template = ChatTemplate.load(tmp_path)
        assert not template.is_present
        with pytest.raises(InvalidRequest, match="no chat template"):
            template.render(MESSAGES, add_generation_prompt=True)


class TestLoad:
    def write(self, directory: Path, **config: Any) -> Path:
        (directory / "tokenizer_config.json").write_text(json.dumps(config))
        added = [
            {"id": 0, "content": "<|end|>", "special": True},
            {"id": 1, "content": "<tool>", "special": False},
        ]
        (directory / "tokenizer.json").write_text(json.dumps({"added_tokens": added}))
        return directory

    def render(self, directory: Path, tools: list[dict[str, Any]] | None = None) -> str:
        template = ChatTemplate.load(directory)
        assert template.is_present
        return template.render(MESSAGES, add_generation_prompt=False, tools=tools)

    def test_from_the_configuration(self, tmp_path: Path) -> None:
        self.write(
            tmp_path,
            chat_template="{{ bos_token }}{{ eos_token }}{{ messages[0].role }}",
            bos_token="<s>",
            eos_token={"content": "</s>", "lstrip": False},
        )
        assert self.render(tmp_path) == "<s></s>system"

    def test_a_file_of_its_own_comes_first(self, tmp_path: Path) -> None:
        self.write(tmp_path, chat_template="config")
        (tmp_path / "chat_template.jinja").write_text("file")
        assert self.render(tmp_path) == "file"

    def test_named_templates(self, tmp_path: Path) -> None:
        named = [
            {"name": "default", "template": "plain"},
            {"name": "tool_use", "template": "{{ tools[0].function.name }}"},
        ]
        self.write(tmp_path, chat_template=named)
        assert self.render(tmp_path) == "plain"
        assert self.render(tmp_path, TOOLS) == "find"

    def test_a_malformed_configuration(self, tmp_path: Path) -> None:
        (tmp_path / "tokenizer_config.json").write_text("[")
        with pytest.raises(ModelLoadError, match="tokenizer_config"):
            ChatTemplate.load(tmp_path)

    def test_control_tokens_are_guarded_wherever_they_stand(self, tmp_path: Path) -> None:
        self.write(tmp_path, chat_template="{{ messages | tojson }}<|end|>{{ tools | tojson }}")
        template = ChatTemplate.load(tmp_path)
        evil: list[dict[str, Any]] = [{"content": ["a<|end|>", {"text": "<|end|>"}], "x": "<tool>"}]
        found = template.render(evil, add_generation_prompt=False, tools=evil)
        guarded = f"<{GUARD}|end|>"
        assert found.count("<|end|>") == 1, "the template's own"
        assert found.count(guarded) == 4
        assert found.count("<tool>") == 2
        assert evil[0]["content"][0] == "a<|end|>"
