import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { drawPage, pageDigest } from './page-picture.ts';
import { tourDigest, tourPicture } from './tour-picture.ts';

/**
 * Draws the pictures of the README and records in docs/pictures.json what they were drawn from (`make pictures`); or
 * with --check, which needs no browser, reports which of them were drawn from another version of the page or of the
 * tour.
 *
 *   node docs/generate/pictures.ts TOUR_LOG | --check
 */
const DOCS = path.join(import.meta.dirname, '..');
const RECORD = path.join(DOCS, 'pictures.json');

/** @returns the digest of what each picture is drawn from now, by its name in docs/. */
async function currentDigests(): Promise<Readonly<Record<string, string>>> {
  return { 'live-page.png': await pageDigest(), 'tour.svg': await tourDigest() };
}

async function check(): Promise<void> {
  const recorded: Readonly<Record<string, string>> = JSON.parse(await readFile(RECORD, 'utf8'));
  const stale = Object.entries(await currentDigests()).filter(([name, digest]) => recorded[name] !== digest);
  if (stale.length === 0) return;
  const names = stale.map(([name]) => `docs/${name}`).join(', ');
  process.stderr.write(`stale: ${names}; run make pictures and commit the result\n`);
  process.exitCode = 1;
}

async function draw(tourLog: string): Promise<void> {
  await drawPage(path.join(DOCS, 'live-page.png'));
  await writeFile(path.join(DOCS, 'tour.svg'), tourPicture(await readFile(tourLog, 'utf8')));
  await writeFile(RECORD, `${JSON.stringify(await currentDigests(), undefined, 2)}\n`);
}

const [, , argument] = process.argv;
if (argument === undefined)
  throw new TypeError('expected --check, or a file with the output of shale sandbox tour');
await (argument === '--check' ? check() : draw(argument));
