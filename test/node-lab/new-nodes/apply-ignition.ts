import { mkdir, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { z } from 'zod';

const Config = z.object({
  storage: z
    .object({
      files: z
        .array(z.object({ path: z.string(), mode: z.int(), contents: z.object({ source: z.string() }) }))
        .default([]),
    })
    .default({ files: [] }),
  systemd: z.object({
    units: z.array(
      z.object({
        name: z.string(),
        contents: z.string().optional(),
        dropins: z.array(z.object({ name: z.string(), contents: z.string() })).default([]),
      }),
    ),
  }),
});

const UNITS = 'etc/systemd/system';
const BASE64 = 'data:;base64,';

/**
 * Writes what an Ignition config of `shale node ignition` asks for to a machine that was not booted yet, as Ignition
 * does in the initramfs; the virtual machine of first-boot.soak.test.ts has Ignition itself.
 *
 * @param root of the deployment that will be booted.
 */
export async function applyIgnition(root: string, json: string): Promise<void> {
  const { storage, systemd } = Config.parse(JSON.parse(json));
  const write = async (place: string, content: string | Buffer, mode = 0o644) => {
    const file = path.join(root, place);
    await mkdir(path.dirname(file), { recursive: true });
    await writeFile(file, content, { mode });
  };
  for (const { path: place, mode, contents } of storage.files) {
    if (!contents.source.startsWith(BASE64)) throw new TypeError(`${place}: expected base64`);
    await write(place, Buffer.from(contents.source.slice(BASE64.length), 'base64'), mode);
  }
  for (const { name, contents, dropins } of systemd.units) {
    for (const dropin of dropins) await write(`${UNITS}/${name}.d/${dropin.name}`, dropin.contents);
    if (contents === undefined) continue;
    await write(`${UNITS}/${name}`, contents);
    for (const [, target] of contents.matchAll(/^WantedBy=(.*)$/gm)) {
      await mkdir(path.join(root, UNITS, `${target}.wants`), { recursive: true });
      await symlink(`../${name}`, path.join(root, UNITS, `${target}.wants`, name));
    }
  }
}
