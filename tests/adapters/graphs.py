"""Graphs that the tests of the checkpointer run."""

from __future__ import annotations

import operator
from typing import Annotated, Any, TypedDict

from langgraph.channels.delta import DeltaChannel
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import interrupt


class Notes(TypedDict):
    """The state of the graphs."""

    notes: Annotated[list[str], operator.add]


def _join(present: list[str], writes: Any) -> list[str]:
    return [*present, *(note for batch in writes for note in batch)]


class LongNotes(TypedDict):
    """The same, kept as what was written since the last snapshot."""

    notes: Annotated[list[str], DeltaChannel(_join, snapshot_frequency=3)]


def ask(state: Notes) -> dict[str, list[str]]:
    """Waits for the answer of a person."""
    return {"notes": [f"answer: {interrupt('what?')}"]}


def asking_graph(saver: Any) -> CompiledStateGraph[Any, Any, Any, Any]:
    """Notes, asks and ends; the question is in a graph inside of the graph."""
    inner = StateGraph(Notes)
    inner.add_node("ask", ask)
    inner.add_edge(START, "ask")
    inner.add_edge("ask", END)
    outer = StateGraph(Notes)
    outer.add_node("first", lambda state: {"notes": ["first"]})
    outer.add_node("inside", inner.compile())
    outer.add_edge(START, "first")
    outer.add_edge("first", "inside")
    outer.add_edge("inside", END)
    return outer.compile(checkpointer=saver)


def noting_graph(saver: Any, state: type = Notes) -> CompiledStateGraph[Any, Any, Any, Any]:
    """Keeps what it is given."""
    graph = StateGraph(state)
    graph.add_node("note", lambda state: {"notes": [f"noted {len(state['notes'])}"]})
    graph.add_edge(START, "note")
    graph.add_edge("note", END)
    return graph.compile(checkpointer=saver)


def thread(name: str, **configurable: str) -> Any:
    """The config of a thread."""
    return {"configurable": {"thread_id": name, **configurable}}
