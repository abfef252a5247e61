/**
 * Lets three writers, one for each airport of New York, append their flights to one autobase, and keeps their oplogs.
 *
 *     seglake cat --json --value text FILE.active | node examples/autobase/write.js FOLDER
 *
 * README.md beside this file has the whole story. Needs `make interop`, which installs the package.
 */

import { createInterface } from 'node:readline/promises'
import { join } from 'node:path'

import { Network, RELEASES } from '../../tests/interop/network.js'
import { writeOplog } from '../../tests/interop/oplog.js'

const AIRPORTS = ['EWR', 'JFK', 'LGA']
const FLIGHTS_EACH = 200

const [folder] = process.argv.slice(2)
if (!folder) {
  console.error('usage: seglake cat --json --value text FILE.active | node write.js FOLDER')
  process.exit(2)
}

const handlers = { valueEncoding: 'binary', open: (store) => store.get('departures'), apply }
const hours = await departuresByHour()

await Network.with(RELEASES.at(-1), 'flights', handlers, async (network) => {
  await network.join(...AIRPORTS)
  const [founder, ...others] = AIRPORTS
  for (const airport of others) await network.base(founder).append(Buffer.from(network.key(airport), 'hex'))
  await network.index()

  // Within an hour nobody hears of the others, so that what they append forks; at its end they merge.
  for (const departures of hours.values()) {
    for (const airport of AIRPORTS) {
      const values = departures.filter(({ origin }) => origin === airport).map(({ text }) => Buffer.from(text))
      if (values.length) await network.base(airport).append(values)
    }
    await network.index()
  }
  for (const airport of AIRPORTS) await writeOplog(join(folder, `${airport}.oplog`), await network.blocks(airport))
})

/** A key of 32 bytes is a writer to add; anything else is a flight, of which the view keeps the first bytes. */
async function apply(nodes, view, host) {
  for (const { value } of nodes) {
    if (value.length === 32) await host.addWriter(value, { indexer: true })
    else await view.append(value.subarray(0, 64))
  }
}

/**
 * The first flights of each airport, from the lines on standard input, whose `value` is a flight as JSON text.
 *
 * @returns {Promise<Map<number, { origin: string, text: string }[]>>} by the hour in which they should have left
 */
async function departuresByHour() {
  const taken = Object.fromEntries(AIRPORTS.map((airport) => [airport, 0]))
  const hours = new Map()
  for await (const line of createInterface({ input: process.stdin })) {
    const text = JSON.parse(line).value
    const { origin, sched_dep_time: clock } = JSON.parse(text)
    if (taken[origin]++ >= FLIGHTS_EACH) continue
    const hour = Math.floor(clock / 100)
    hours.set(hour, [...(hours.get(hour) ?? []), { origin, text }])
  }
  return hours
}
