"""isle's tools as tools of LangChain (`pip install langchain-core`), for any model that it binds tools to.

ISLE_URL and ISLE_KEY as for loop.py, whose calls are used here. The model is one of LangChain's own that says what it
is told to; a real one would be `ChatOpenAI(...).bind_tools(tools)` and the like.
"""

from __future__ import annotations

from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import StructuredTool, ToolException
from loop import RATE, Isle, for_model


def as_tool(isle: Isle, schema: dict) -> StructuredTool:
    """Of a function schema. What goes wrong is for the model to read: it is told as much of it as of what goes well."""

    def call(**arguments: object) -> str:
        said = isle.call(schema["name"], arguments)
        if not said["success"]:
            raise ToolException(for_model(said))
        return for_model(said)

    return StructuredTool.from_function(
        call,
        name=schema["name"],
        description=schema["description"],
        args_schema=schema["parameters"],
        handle_tool_error=True,
    )


def wish(name: str, **arguments: object) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": f"call_{name}"}])


def main() -> None:
    isle = Isle()
    try:
        isle.request("POST", "/tools/import", {"tools": [RATE], "on_conflict": "replace"})
        schemas = isle.request("GET", "/tools/schemas?format=openai")["tools"]
        tools = {s["function"]["name"]: as_tool(isle, s["function"]) for s in schemas}
        model = GenericFakeChatModel(
            messages=iter(
                [
                    wish("rate", currency="dollar"),
                    wish("rate", currency="USD"),
                    wish("run_python", code="print('begun')\nreturn amount * 0.92", params={"amount": 120}),
                    wish("run_python", code="return round(params['amount'] * 0.92, 2)", params={"amount": 120}),
                    AIMessage("120 dollars are 110.40 euros."),
                ]
            )
        )
        messages = [HumanMessage("How many euros are 120 dollars?")]
        while (answer := model.invoke(messages)).tool_calls:
            messages.append(answer)
            for call in answer.tool_calls:
                result = tools[call["name"]].invoke(call)  # a ToolMessage
                messages.append(result)
                print(f"{result.name}: {result.content}")
        print(answer.content)
    finally:
        isle.request("DELETE", f"/sandbox/sessions/{isle.session}")


if __name__ == "__main__":
    main()
