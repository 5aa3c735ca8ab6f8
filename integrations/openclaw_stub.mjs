// Runs steps of a test with the plugin of the recipe: `node openclaw_stub.mjs PLUGIN STATE STEPS`.
//
// It takes the place of OpenClaw for what a command line cannot show: channels, their senders, and
// other kinds of runs. A step calls a hook, or a tool with its arguments as the event.
import { pathToFileURL } from "node:url";

const [plugin, state, steps] = process.argv.slice(2);
const hooks = new Map();
const tools = new Map();
const { default: entry } = await import(pathToFileURL(plugin));
entry.register({
  pluginConfig: { url: process.env.MEMORYWALL_URL, apiKey: process.env.MEMORYWALL_API_KEY },
  runtime: { state: { resolveStateDir: () => state } },
  on: (name, handler) => hooks.set(name, handler),
  registerTool: (factory, { name }) => tools.set(name, factory),
  registerMemoryCapability() {},
});
const results = [];
for (const { hook, tool, event, ctx } of JSON.parse(steps)) {
  try {
    const result = await (hook ? hooks.get(hook)(event, ctx) : tools.get(tool)(ctx).execute("1", event));
    results.push(result?.prependContext ?? result?.details ?? null);
  } catch (error) {
    results.push({ failed: error.message });
  }
}
console.log(JSON.stringify(results));
