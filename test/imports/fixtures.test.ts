import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { FORMATS } from '../../src/imports/formats.ts'
import { findIgnored } from '../../src/records/validate/ignored.ts'
import { validateResource } from '../../src/records/validate/resource.ts'
import { parseOneDocument } from '../../src/yaml/parse-document.ts'
import { printBlockYaml } from '../../src/yaml/print-block-yaml.ts'
import type { YamlValue } from '../../src/yaml/scan-block-yaml.ts'
import { formatOf, importFiles } from './import-files.ts'

/*
 * Each folder `fixtures/FORMAT/NAME` has files of the format, rebuilt from public examples, and what they become:
 * `records.txt` and `notes.txt`. `SEXTANT_FIXTURES=write` writes these two: read the difference.
 */
const FIXTURES = join(dirname(fileURLToPath(import.meta.url)), 'fixtures')
const RECORDS = 'records.txt'
const NOTES = 'notes.txt'

const folders = readdirSync(FIXTURES).flatMap((format) =>
  readdirSync(join(FIXTURES, format)).map((name) => ({ format, name })),
)

for (const { format, name } of folders) {
  t.test(`${format}: ${name}`, async (t) => {
    const folder = join(FIXTURES, format, name)
    const names = readdirSync(folder).filter(
      (file) => ![RECORDS, NOTES].includes(file) && !file.endsWith('.inc'),
    )
    const files = Object.fromEntries(
      names.map((file) => [join(folder, file), readFileSync(join(folder, file))]),
    )
    const imported = importFiles(formatOf(format), files)
    t.strictSame(importFiles(formatOf(format), files), imported, 'the same files, the same output')
    for (const document of imported.documents) {
      const text = printBlockYaml(document).join('\n')
      t.strictSame(
        parseOneDocument(text),
        JSON.parse(JSON.stringify(document)),
        document.metadata.name,
      )
      const found = validateResource(document as unknown as YamlValue)
      t.equal(found.kind, 'record', document.metadata.name)
      if (found.kind !== 'record') continue
      const unknown = findIgnored(document as unknown as YamlValue, found.record, 'manifest')
      t.strictSame(
        unknown.filter(({ isUnknown }) => isUnknown),
        [],
      )
    }
    const objects = imported.documents.map(({ metadata }) => metadata.name)
    t.equal(new Set(objects).size, objects.length, 'each DNSRecord has its own name')
    const records = imported.documents
      .map((one) => `---\n${printBlockYaml(one).join('\n')}\n`)
      .join('')
    const notes = imported.notes.map((note) => `${note.replaceAll(`${folder}/`, '')}\n`).join('')
    if (process.env.SEXTANT_FIXTURES === 'write') {
      writeFileSync(join(folder, RECORDS), records)
      writeFileSync(join(folder, NOTES), notes)
    }
    t.equal(records, readFileSync(join(folder, RECORDS), 'utf8'))
    t.equal(notes, readFileSync(join(folder, NOTES), 'utf8'))
  })
}

t.test('each format has fixtures', async (t) => {
  const found = new Set(folders.map(({ format }) => format))
  t.strictSame([...found].sort(), FORMATS.map(({ word }) => word).sort())
})
