"""Drives a served chat with the unmodified ChatOpenAI of LangChain. Usage: langchain_client.py PATH_OF_omni-flow"""

import sys

from langchain_core.messages import HumanMessage, SystemMessage
from langchain_openai import ChatOpenAI

from served import LONG, served

ASK = [SystemMessage("Answer in one short sentence."), HumanMessage("Why is the sky blue?")]


def main(program):
    with served(program, "chat") as url:
        options = dict(base_url=f"{url}/v1", api_key="none", model="chat", max_retries=0, timeout=LONG)
        chat = ChatOpenAI(**options, temperature=0, max_tokens=24)
        answer = chat.invoke(ASK)
        assert answer.content and answer.usage_metadata["total_tokens"] > 0, answer
        assert answer.response_metadata["finish_reason"] in ("stop", "length"), answer
        print("ok  an answer", flush=True)
        streamed = None
        for chunk in chat.stream(ASK, stream_usage=True):
            streamed = chunk if streamed is None else streamed + chunk
        assert streamed.content == answer.content, (streamed.content, answer.content)
        counted = streamed.usage_metadata["total_tokens"]
        assert counted == answer.usage_metadata["total_tokens"], "counted alike"
        print("ok  the same, streamed", flush=True)
        loud = chat.bind(modalities=["text", "audio"], audio={"voice": "alloy", "format": "wav"}).invoke(ASK)
        audio = loud.additional_kwargs["audio"]
        assert audio["transcript"] == answer.content and len(audio["data"]) > 20_000, audio["transcript"]
        print("ok  the same, spoken", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
