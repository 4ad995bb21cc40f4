// Vercel AI SDK: `generateText` and `streamText` over `@ai-sdk/openai-compatible`, with tools that run.
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, jsonSchema, stepCountIs, streamText, tool } from "ai";

const PROMPT = "How are the tides?";
const tools = {
  get_tide: tool({
    description: "The tides of a port.",
    inputSchema: jsonSchema({
      type: "object",
      properties: { port: { type: "string" }, days: { type: "integer" } },
      required: ["port", "days"],
    }),
    execute: async () => "2.4 m",
  }),
  list_ports: tool({
    description: "The ports that have tides.",
    inputSchema: jsonSchema({ type: "object", properties: {} }),
    execute: async () => "2.4 m",
  }),
};

async function whole(baseURL, name) {
  const provider = createOpenAICompatible({ name: "streamsieve", baseURL });
  const result = await generateText({ model: provider(name), prompt: PROMPT, tools, stopWhen: stepCountIs(2) });
  return turn(result.steps);
}

async function streamed(baseURL, name) {
  const provider = createOpenAICompatible({ name: "streamsieve", baseURL });
  const result = streamText({ model: provider(name), prompt: PROMPT, tools, stopWhen: stepCountIs(2) });
  for await (const part of result.fullStream) {
    if (part.type === "error") throw part.error;
  }
  return turn(await result.steps);
}

function turn(steps) {
  const [first, ...rest] = steps;
  return {
    reasoning: first.reasoningText || null,
    content: first.text || null,
    calls: first.toolCalls.map((call) => [call.toolName, call.input]),
    finish_reason: first.rawFinishReason ?? first.finishReason,
    then: rest.at(-1)?.text ?? null,
  };
}

const [models, ...urls] = process.argv.slice(2);
const found = {};
for (const url of urls) {
  found[url] = {};
  for (const model of models.split(",")) {
    found[url][model] = { whole: await whole(url, model), streamed: await streamed(url, model) };
  }
}
process.stdout.write(JSON.stringify(found));
