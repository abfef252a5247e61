/**
 * The `.oplog` file, and what the package's own decoder says of a message.
 *
 * A `.oplog` file is a run of compact-encoding buffers, one message each, in the order of the writer's core.
 */

import { readFile, writeFile } from 'node:fs/promises'
import c from 'compact-encoding'
import messages from 'autobase/lib/messages.js'

const { OplogMessage } = messages

/**
 * Writes messages as a `.oplog` file.
 *
 * @param {string} path
 * @param {Buffer[]} blocks one encoded message each
 */
export async function writeOplog(path, blocks) {
  await writeFile(path, Buffer.concat(blocks.map((block) => c.encode(c.buffer, block))))
}

/**
 * The messages of a `.oplog` file, still encoded.
 *
 * @param {string} path
 * @returns {Promise<Buffer[]>}
 */
export async function readOplog(path) {
  const buffer = await readFile(path)
  const state = c.state(0, buffer.length, buffer)
  const blocks = []
  while (state.start < state.end) blocks.push(c.buffer.decode(state))
  return blocks
}

/**
 * One message as the newest release of the package decodes it, whichever release wrote it.
 *
 * @param {Buffer} block
 */
export function decode(block) {
  return c.decode(OplogMessage, block)
}

/**
 * One message as the package encodes it: what it writes today, so only of version 2.
 *
 * @param {object} message as `decode` returns it
 * @returns {Buffer}
 */
export function encode(message) {
  return c.encode(OplogMessage, message)
}

/**
 * Decoded messages as JSON, one a line: bytes in hexadecimal, what is undefined as null.
 *
 * @param {object[]} decoded
 */
export function toJSON(decoded) {
  return `[\n${decoded.map((message) => JSON.stringify(plain(message))).join(',\n')}\n]\n`
}

function plain(value) {
  if (value === undefined || value === null) return null
  if (value instanceof Uint8Array) return Buffer.from(value).toString('hex')
  if (Array.isArray(value)) return value.map(plain)
  if (typeof value === 'object')
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, plain(item)]))
  return value
}
