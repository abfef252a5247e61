/**
 * Lets writers of the real package append, and keeps what is in their oplogs.
 *
 *     node write.js FOLDER [--old]
 *
 * For each writer of each scenario the folder gets `v2-<scenario>-<writer>.oplog`, its messages as they are in its core,
 * and beside it a `.json`: what the package decodes from each. `--old` adds those of version 1 and 0, from old releases.
 */

import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

import { Network, RELEASES } from './network.js'
import { decode, toJSON, writeOplog } from './oplog.js'
import { HANDLERS, SCENARIOS, randomFrom } from './scenarios.js'

const { values: options, positionals } = parseArgs({ options: { old: { type: 'boolean' } }, allowPositionals: true })
if (positionals.length !== 1) {
  console.error('usage: node write.js FOLDER [--old]')
  process.exit(2)
}
const [folder] = positionals
await mkdir(folder, { recursive: true })

for (const release of RELEASES) {
  if (release.version < 2 && !options.old) continue
  for (const { name, since, handlers, play } of SCENARIOS) {
    if (release.version < since) continue
    await Network.with(release, name, { ...HANDLERS, ...handlers }, folder, async (network) => {
      await play(network, randomFrom(name.length))
      for (const writer of network.names) await save(network, writer, `v${release.version}-${name}-${writer}`)
    })
  }
}

async function save(network, writer, name) {
  const blocks = await network.blocks(writer)
  await writeOplog(join(folder, `${name}.oplog`), blocks)
  await writeFile(join(folder, `${name}.json`), toJSON(blocks.map(decode)))
  console.log(`${name}: ${blocks.length} messages`)
}
