// An agent in Node that streams: one tool, and a loop until the model answers without it.
import { writeFileSync } from "node:fs";

const { OPENAI_BASE_URL, OPENAI_API_KEY, OPENAI_MODEL } = process.env;
const parameters = { type: "object", properties: { path: { type: "string" }, text: { type: "string" } } };
const tools = [{ type: "function", function: { name: "write", description: "Writes a file.", parameters } }];
const messages = [{ role: "user", content: process.argv[2] }];

async function ask() {
  const body = { model: OPENAI_MODEL, messages, tools, stream: true, stream_options: { include_usage: true } };
  const headers = { authorization: `Bearer ${OPENAI_API_KEY}`, "content-type": "application/json" };
  const answer = await fetch(`${OPENAI_BASE_URL}/chat/completions`, { method: "POST", headers, body: JSON.stringify(body) });
  const message = { role: "assistant", content: "", tool_calls: [] };
  let left = "";
  let usage = null;
  for await (const piece of answer.body.pipeThrough(new TextDecoderStream())) {
    const lines = (left + piece).split("\n");
    left = lines.pop();
    for (const line of lines.filter((line) => line.startsWith("data: ") && line !== "data: [DONE]")) {
      const event = JSON.parse(line.slice(6));
      usage = event.usage ?? usage;
      const delta = event.choices[0]?.delta ?? {};
      message.content += delta.content ?? "";
      for (const { index, id, type, function: part } of delta.tool_calls ?? []) {
        message.tool_calls[index] ??= { id, type, function: { name: part.name, arguments: "" } };
        message.tool_calls[index].function.arguments += part.arguments ?? "";
      }
    }
  }
  if (!usage?.total_tokens) throw new Error("a stream without usage");
  return message;
}

for (;;) {
  const message = await ask();
  messages.push(message.tool_calls.length ? message : { role: "assistant", content: message.content });
  if (!message.tool_calls.length) break;
  for (const call of message.tool_calls) {
    const { path, text } = JSON.parse(call.function.arguments);
    writeFileSync(path, text);
    messages.push({ role: "tool", tool_call_id: call.id, content: "written" });
  }
}
