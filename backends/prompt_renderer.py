"""A model's own chat template, for an upstream that is only asked to go on with a prompt."""

from __future__ import annotations

from collections.abc import Mapping

from streamsieve.backends.model_files import read_model
from streamsieve.backends.openai_error import ApiError
from streamsieve.parsers.errors import ConfigurationError
from streamsieve.wire.completions.renderer import Prompt, Renderer
from streamsieve.wire.request.refusal import Refused


def prompt_renderer(source: str) -> Renderer:
    """Renders prompts by the chat template of `source`: a model's folder, a GGUF file or a `.jinja` file.

    For `Settings.render_prompt`. It needs `transformers`, whose template engine it uses, but not torch.
    Raises ConfigurationError where there is no template, or no `transformers`. What the template refuses is
    refused with a 400.
    """
    try:
        from streamsieve.backends.local.server.prompt import ChatTemplate
    except ModuleNotFoundError as error:
        raise ConfigurationError(f"render_prompt: {error.name} is missing: pip install 'streamsieve[raw]'") from error
    files = read_model(source)
    if files.template is None:
        raise ConfigurationError(f"render_prompt: {source} has no chat template")
    template = ChatTemplate(files.template, {"bos_token": files.bos_token, "eos_token": files.eos_token})

    def render(body: Mapping[str, object]) -> Prompt:
        try:
            return template.render(body)
        except ApiError as error:
            raise Refused(error.message, error.param, error.code, error.status, error.type) from error

    return render
