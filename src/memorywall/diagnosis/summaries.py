"""The summarizer of sessions: its kind, and whether the endpoint of a model answers."""

from __future__ import annotations

import httpx

from memorywall.diagnosis.finding import Finding, ok, problem, warning
from memorywall.records.errors import ConfigurationError
from memorywall.settings import Settings
from memorywall.summaries.model import parse_model

_PATIENCE_SECONDS = 5.0
_REFUSED = (httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN)


def check_summaries(settings: Settings) -> Finding:
    """Asks the endpoint of the model for its list of models, which sends no memory."""
    if settings.summary_model is None:
        return ok("summaries", "extractive; no model is asked")
    try:
        base, model, local = parse_model(settings.summary_model)
    except ConfigurationError as error:
        return problem("summaries", error.detail)
    key = settings.summary_model_key
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    where = f"{model} at {httpx.URL(base).host}"
    try:
        with httpx.Client(timeout=_PATIENCE_SECONDS, trust_env=not local) as client:
            status = client.get(base.rstrip("/") + "/models", headers=headers).status_code
    except httpx.HTTPError as error:
        return warning(
            "summaries",
            f"the endpoint of {where} does not answer ({type(error).__name__})",
            "correct summary_model, or start the endpoint; until then summaries are extractive",
        )
    if status in _REFUSED:
        return warning(
            "summaries", f"the endpoint of {where} refuses the key", "set summary_model_key"
        )
    return ok("summaries", f"{where}, in sessions whose policy has the summarizer `model`")
