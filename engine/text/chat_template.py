"""ChatTemplate: messages -> the prompt text that the model was trained on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jinja2 import TemplateError

from engine.errors import InvalidRequest
from engine.text.config_files import read_optional_json
from engine.text.control_tokens import ControlTokenGuard
from engine.text.template_limits import LimitReached, TemplateLimits, metered
from engine.text.template_sandbox import TemplateRefusal, TemplateSandbox

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from jinja2 import Template

_TEMPLATE_FILE = "chat_template.jinja"
_FOR_TOOLS = "tool_use"
_DEFAULT = "default"
_TOKEN_NAMES = ("bos_token", "eos_token", "unk_token", "pad_token", "sep_token", "cls_token")


class ChatTemplate:
    """A model's template, in a sandbox with limits. Safe to use from several threads.

    A template that cannot be compiled is reported when it is used: the model still completes text.
    """

    def __init__(
        self,
        sources: dict[str, str],
        *,
        tokens: dict[str, str] | None = None,
        control_tokens: Iterable[str] = (),
        limits: TemplateLimits | None = None,
        sandbox: TemplateSandbox | None = None,
    ) -> None:
        """
        Args:
            sources: Jinja text by name, `default` and perhaps `tool_use`.
            tokens: what templates know as `bos_token` and so on.
            control_tokens: spellings that messages may contain only as text.
            limits: what one rendering may cost.
            sandbox: only tests give one, for its clock.
        """
        self._limits = limits or TemplateLimits()
        self._sandbox = sandbox or TemplateSandbox()
        self._tokens = dict(tokens or {})
        self._guard = ControlTokenGuard(control_tokens)
        self._problem = ""
        self._templates: dict[str, Template] = {}
        for name, source in sources.items():
            self._compile(name, source)

    @classmethod
    def load(cls, directory: Path) -> ChatTemplate:
        """Read chat_template.jinja, else tokenizer_config.json; a model may have neither.

        Raises ModelLoadError when a file is there but malformed.
        """
        config = read_optional_json(directory / "tokenizer_config.json")
        tokens = {}
        for name in _TOKEN_NAMES:
            value = config.get(name)
            spelling = value.get("content") if isinstance(value, dict) else value
            if isinstance(spelling, str):
                tokens[name] = spelling
        added = read_optional_json(directory / "tokenizer.json").get("added_tokens", [])
        control = [str(token["content"]) for token in added if token.get("special")]
        sources = _sources(config.get("chat_template"))
        own_file = directory / _TEMPLATE_FILE
        if own_file.is_file():
            sources[_DEFAULT] = own_file.read_text(encoding="utf-8")
        return cls(sources, tokens=tokens, control_tokens=control)

    @property
    def is_present(self) -> bool:
        """Whether the model has a template that can be used."""
        return bool(self._templates)

    def render(
        self,
        messages: Sequence[dict[str, Any]],
        *,
        add_generation_prompt: bool,
        tools: Sequence[dict[str, Any]] | None = None,
    ) -> str:
        """The prompt text, to be encoded with `add_special_tokens=False`.

        Control tokens that are spelled out in messages or tools are guarded: the tokenizer reads
        them as the text they are.

        Args:
            messages: plain JSON values, `role` and `content` at least.
            add_generation_prompt: whether the text ends with the beginning of an answer.
            tools: JSON descriptions of functions, for templates that know them.

        Raises InvalidRequest: no template, one that does not take these messages, that fails, or
        that reaches a limit.
        """
        name = _FOR_TOOLS if tools and _FOR_TOOLS in self._templates else _DEFAULT
        template = self._templates.get(name)
        if template is None:
            raise InvalidRequest(
                self._problem or "the model has no chat template; use completions instead",
                param="messages",
            )
        try:
            with metered(self._limits):
                text = template.render(
                    **self._tokens,
                    messages=self._guarded(list(messages)),
                    tools=self._guarded(list(tools)) if tools else None,
                    documents=None,
                    add_generation_prompt=add_generation_prompt,
                )
        except TemplateRefusal as error:
            raise _refused(f"the model's chat template does not take this: {error}") from error
        except LimitReached as error:
            raise _refused(f"the model's chat template needs {error}") from error
        except (RecursionError, MemoryError) as error:
            raise _refused("the model's chat template nests too deeply") from error
        except Exception as error:
            # An edge: a template is foreign code, and may raise what Python can.
            raise _refused(f"the model's chat template failed: {error}") from error
        if len(text) > self._limits.max_output_chars:
            raise _refused("the rendered messages are too long")
        return text

    def _compile(self, name: str, source: str) -> None:
        if len(source) > self._limits.max_source_chars:
            self._problem = "the model's chat template is too long"
            return
        try:
            self._templates[name] = self._sandbox.from_string(source)
        except (TemplateError, SyntaxError, RecursionError, MemoryError, ValueError) as error:
            self._problem = f"the model's chat template cannot be used: {error}"

    def _guarded(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._guard.guard(value)
        if isinstance(value, dict):
            return {key: self._guarded(member) for key, member in value.items()}
        if isinstance(value, list | tuple):
            return [self._guarded(member) for member in value]
        return value


def _refused(message: str) -> InvalidRequest:
    return InvalidRequest(message, param="messages")


def _sources(value: Any) -> dict[str, str]:
    """A template, or a list of named ones."""
    if isinstance(value, str):
        return {_DEFAULT: value}
    if isinstance(value, list):
        return {str(entry["name"]): str(entry["template"]) for entry in value if "name" in entry}
    return {}
