/**
 * Decodes each message of a `.oplog` file and encodes it again, both with the package.
 *
 *     node reencode.js SOURCE TARGET
 */

import { decode, encode, readOplog, writeOplog } from './oplog.js'

const [source, target] = process.argv.slice(2)
if (!target) {
  console.error('usage: node reencode.js SOURCE TARGET')
  process.exit(2)
}
await writeOplog(target, (await readOplog(source)).map(decode).map(encode))
