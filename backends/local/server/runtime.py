"""A model that is loaded and runs: all that its routes need of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from streamsieve.backends.local.constraints.grammar import Grammars
from streamsieve.backends.local.constraints.request_constraint import Options, RequestConstraints
from streamsieve.backends.local.constraints.vocabulary import Vocabulary
from streamsieve.backends.local.engine.continuous_engine import continuous_engine
from streamsieve.backends.local.engine.engine import Engine
from streamsieve.backends.local.engine.slot_engine import slot_engine
from streamsieve.backends.local.model.loading import LocalModel, load
from streamsieve.backends.local.model.options import ModelOptions
from streamsieve.backends.local.model.progress import Progress
from streamsieve.backends.local.server.prompt import ChatTemplate
from streamsieve.backends.local.server.requests import ServedModel
from streamsieve.backends.local.server.tokenizer import Tokenizer
from streamsieve.wire.settings import Settings

_DEFAULTS = ("temperature", "top_p", "top_k", "min_p", "repetition_penalty")
"""What a model's generation config may set for requests that do not."""


@dataclass(frozen=True, slots=True)
class Runtime:
    """The engine, and what stands between it and text.

    `template` is None where the model has no chat template. `settings`: those of the middleware on top. `chats`
    and `texts` bind the replies to chats, and the completions of bare prompts, which nobody parses.
    """

    engine: Engine
    tokenizer: Tokenizer
    vocabulary: Vocabulary
    template: ChatTemplate | None
    served: ServedModel
    settings: Settings
    chats: RequestConstraints
    texts: RequestConstraints

    @property
    def kept_ends(self) -> frozenset[int]:
        """The end tokens that the middleware's format knows by their text."""
        known = self.settings.format.ends if self.settings.format is not None else ()
        return frozenset(id for id in self.served.eos_token_ids if self.tokenizer.token(id) in known)

    @classmethod
    def load(
        cls, options: ModelOptions, settings: Settings, progress: Progress = lambda stage, percent: None
    ) -> Runtime:
        """Load the model, and start its engine. Raises ConfigurationError for what cannot be loaded.

        `settings`: those of the middleware, whose format calls are held to.
        """
        model = load(
            options.source,
            dtype=options.dtype,
            device=options.device,
            longest=options.max_model_len,
            progress=progress,
        )
        progress("reading the tokenizer", 0.0)
        return cls.of(model, Tokenizer.load(options.source), options, settings)

    @classmethod
    def of(cls, model: LocalModel, tokenizer: Tokenizer, options: ModelOptions, settings: Settings) -> Runtime:
        """A model that is in memory already."""
        eos = model.eos_token_ids or frozenset(filter(None, [tokenizer.eos_token_id]))
        vocabulary = Vocabulary(tokenizer.huggingface, size=model.vocabulary, stops=eos)
        grammars = Grammars(vocabulary)
        binding = Options(
            enable_in_reasoning=options.enable_in_reasoning,
            inexpressible="refuse" if settings.enforcement == "always" else "best effort",
            tool_strict_level=settings.tool_strict_level,
        )
        engine = _engine(model, options)
        engine.start()
        return cls(
            engine=engine,
            tokenizer=tokenizer,
            vocabulary=vocabulary,
            template=_template(tokenizer),
            served=ServedModel(
                name=model.name, vocabulary=model.vocabulary, eos_token_ids=eos, defaults=_defaults(model)
            ),
            settings=settings,
            chats=RequestConstraints(grammars, settings.format, tokenizer.encode, binding),
            texts=RequestConstraints(grammars, None, tokenizer.encode, binding),
        )


def _engine(model: LocalModel, options: ModelOptions) -> Engine:
    make = slot_engine if options.executor == "slots" else continuous_engine
    return make(model, rows=options.slots, queue=options.queue)


def _defaults(model: LocalModel) -> Mapping[str, object]:
    """The sampling of the model's generation config; what it leaves at None is OpenAI's default."""
    config = model.model.generation_config
    found = {name: getattr(config, name, None) for name in _DEFAULTS}
    return {name: value for name, value in found.items() if value is not None}


def _template(tokenizer: Tokenizer) -> ChatTemplate | None:
    variables = dict(tokenizer.huggingface.special_tokens_map)
    match tokenizer.huggingface.chat_template:
        case str(source):
            return ChatTemplate(source, variables)
        case {"default": str(source), **others}:
            tool_source = others.get("tool_use")
            return ChatTemplate(source, variables, tool_source=tool_source if isinstance(tool_source, str) else None)
    return None
