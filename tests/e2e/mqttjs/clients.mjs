// Clients on MQTT.js, told what to do by lines of JSON on standard input, and telling what has happened on standard output.
//
// A command is [number, client, name, ...arguments]; its answer is ["answer", number, null or what went wrong, result]. Events of
// a client are [kind, client, details].

import mqtt from "mqtt";
import { createInterface } from "node:readline";

const clients = new Map();
const tell = (...line) => process.stdout.write(`${JSON.stringify(line)}\n`);

/** Payloads and correlation data are texts on the way to the tests and back. */
function readable(packet) {
  const texts = (_, value) => (value?.type === "Buffer" ? Buffer.from(value.data).toString() : value);
  // There is no acknowledgement of QoS 0.
  return JSON.parse(JSON.stringify(packet ?? null), texts);
}

function sendable(options = {}) {
  const { correlationData } = options.properties ?? {};
  if (correlationData === undefined) {
    return options;
  }
  return { ...options, properties: { ...options.properties, correlationData: Buffer.from(correlationData) } };
}

function open(name, url, options) {
  const client = mqtt.connect(url, options);
  clients.set(name, client);
  client.on("connect", (connack) => tell("connected", name, readable(connack)));
  client.on("message", (topic, payload, packet) => tell("message", name, { ...readable(packet), topic, payload: payload.toString() }));
  client.on("disconnect", (packet) => tell("disconnected", name, readable(packet)));
  client.on("close", () => tell("closed", name, null));
  client.on("error", (error) => tell("error", name, { code: error.code, message: error.message }));
  // A topic that is empty on the wire stands for an alias.
  client.on("packetsend", (packet) => packet.cmd === "publish" && packet.topic === "" && tell("alias", name, readable(packet)));
}

const commands = {
  open,
  publish: async (name, topic, payload, options) => readable(await clients.get(name).publishAsync(topic, payload, sendable(options))),
  /** Publishes numbers at a pace, connected or not, waits until all are acknowledged, and returns the codes of failures. */
  count: async (name, topic, first, end, pause, options) => {
    const [sent, failures] = [[], []];
    for (let number = first; number < end; number += 1) {
      const publication = clients.get(name).publishAsync(topic, String(number), options);
      sent.push(publication.catch((error) => failures.push(error.code ?? error.message)));
      await new Promise((resolve) => setTimeout(resolve, pause));
    }
    await Promise.all(sent);
    return failures;
  },
  subscribe: (name, filter, options) => clients.get(name).subscribeAsync(filter, options),
  unsubscribe: (name, filter) => clients.get(name).unsubscribeAsync(filter),
  /** How many messages it keeps: of QoS 0 until there is a connection, of others until they are acknowledged. */
  waiting: (name) => clients.get(name).queue.length + Object.keys(clients.get(name).outgoing).length,
  /** Ends the connection without DISCONNECT. */
  cut: (name) => clients.get(name).stream.destroy(),
  end: (name, options) => clients.get(name).endAsync(false, options),
  leave: (name) => clients.get(name).endAsync(true),
};

createInterface({ input: process.stdin })
  .on("line", async (line) => {
    const [number, name, command, ...given] = JSON.parse(line);
    try {
      tell("answer", number, null, (await commands[command](name, ...given)) ?? null);
    } catch (error) {
      tell("answer", number, { code: error.code, message: error.message }, null);
    }
  })
  .on("close", () => process.exit());
