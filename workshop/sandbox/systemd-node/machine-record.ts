import { readFile, rename, writeFile } from 'node:fs/promises';
import { z } from 'zod';
import { directoryNodeLayout } from '../node/directory-host.ts';

const Record = z.object({
  bootID: z.string().min(1),
  /** The booted deployment's directory, relative to the sysroot. */
  deployment: z.string().min(1),
  bootCount: z.int().positive(),
  /** Process id of the machine's init, as this machine sees it. */
  leader: z.int().positive(),
});

/** The present boot of a node with systemd, for those who have to reach it: what DirectoryMachine is for a directory. */
export type MachineRecord = z.infer<typeof Record>;

/** @param dir of the node. @throws when it was never booted, naming the file. */
export async function readMachineRecord(dir: string): Promise<MachineRecord> {
  return Record.parse(JSON.parse(await readFile(directoryNodeLayout(dir).machine, 'utf8')));
}

/** Writes what is known of a boot; its number is counted on from the boot before. */
export async function writeMachineRecord(dir: string, boot: Omit<MachineRecord, 'bootCount'>): Promise<void> {
  const { machine } = directoryNodeLayout(dir);
  const before = await readMachineRecord(dir).catch(() => undefined);
  const record: MachineRecord = { ...boot, bootCount: (before?.bootCount ?? 0) + 1 };
  await writeFile(`${machine}.new`, `${JSON.stringify(record)}\n`);
  await rename(`${machine}.new`, machine);
}
