"""What a model's chat template puts round the messages of a conversation."""

from typing import Any

from engine.core import ChatFrame, UserError

_MARKS = ("first-message", "first-answer", "second-message")  # stand in for a chat's messages


def chat_frame(tokenizer: Any, *, system: str, thinks: bool) -> ChatFrame:
    """Return what stands round the messages.

    A model without a template gets the messages as paragraphs.

    Args:
        tokenizer: the model's, in transformers' form.
        system: the system message.
        thinks: whether a model that can think before it answers is to.

    Raises:
        UserError: the template takes no system message, leaves messages out or writes them
            otherwise than they are.
    """
    from jinja2 import TemplateError

    if tokenizer.chat_template is None:
        return ChatFrame(opening=f"{system}\n\n", closing="\n\n", turn="\n\n")
    messages = [
        {"role": "system", "content": system},
        {"role": "user", "content": _MARKS[0]},
        {"role": "assistant", "content": _MARKS[1]},
        {"role": "user", "content": _MARKS[2]},
    ]
    try:
        short, whole = (
            str(
                tokenizer.apply_chat_template(
                    messages[:count],
                    tokenize=False,
                    add_generation_prompt=True,
                    # Many templates let a model think unless they are told otherwise.
                    enable_thinking=thinks,
                )
            )
            for count in (2, 4)
        )
    except (TemplateError, ValueError) as error:
        raise UserError(
            f"the model's chat template can't be used: {' '.join(str(error).split())[:300]}; "
            "set all search.operators but infill to 0"
        ) from error
    opening, asked, closing = short.partition(_MARKS[0])
    _, answered, rest = whole.partition(_MARKS[1])
    turn, again, _ = rest.partition(_MARKS[2])
    if not (asked and answered and again):
        raise UserError("the model's chat template does not show every message as it is")
    return ChatFrame(opening=opening, closing=closing, turn=turn)
