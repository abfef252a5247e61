/**
 * Prints what the package decodes from each message of a `.oplog` file, as JSON.
 *
 *     node decode.js FILE
 */

import { decode, readOplog, toJSON } from './oplog.js'

const [path] = process.argv.slice(2)
if (!path) {
  console.error('usage: node decode.js FILE')
  process.exit(2)
}
process.stdout.write(toJSON((await readOplog(path)).map(decode)))
