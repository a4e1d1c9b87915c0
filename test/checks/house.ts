/**
 * Holds the code against the structure that docs/architecture.md describes: no circle of files, in each room no import
 * from a lower floor to a higher one, no feature that more files know than its bound allows, no name that two files of
 * the product export, no comment that is wider than a screen, and no test of real parts that does not begin with the
 * question it answers. `--figures` prints each room's size instead.
 */
import { existsSync, globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { plural } from '../../api/plural.ts';
import { sharedNames } from './exported-names.ts';
import { featureProblems, featuresOf } from './features.ts';
import { type Floors, upwardArrows } from './floors.ts';
import { productRooms } from './import-directions.ts';
import { findCircles, type ImportGraph, isTestFile, readImportGraph } from './import-graph.ts';

const root = path.join(import.meta.dirname, '../..');

/** Rooms whose files have floors, from the doors down. */
const floors: Readonly<Record<string, Floors>> = {
  builder: [
    ['main', 'loop', 'build-controller'],
    ['steps'],
    ['status', 'observe', 'decide', 'decide-relabel', 'metrics', 'secrets', 'build-secrets'],
    ['engine', 'attest', 'layer', 'proof'],
    ['.'],
  ],
  capi: [['main'], ['server', 'hooks', 'loop', 'metrics'], ['clusters'], ['decide'], ['mapping', 'contract']],
  cli: [
    ['main', 'program'],
    [
      '.',
      'completion',
      'diff',
      'doctor',
      'fleet',
      'gather',
      'history',
      'image',
      'layering',
      'maintenance',
      'node',
      'plan',
      'try',
      'version',
    ],
    ['observe', 'change'],
    ['command-line'],
  ],
  daemon: [
    ['.'],
    ['steps', 'next-boot', 'reboot', 'pinned-images'],
    ['content'],
    ['host', 'os'],
    ['records', 'files'],
  ],
  image: [
    ['signature', 'archive', 'base', 'vulnerabilities'],
    ['.'],
    ['registry', 'layer', 'contents'],
    ['reference', 'digest'],
  ],
  machineconfig: [
    ['.'],
    ['registries', 'services'],
    ['generated-config'],
    ['ignition'],
    ['problem', 'units'],
  ],
  operator: [['main'], ['lead'], ['loop'], ['.', 'proof']],
  page: [['main'], ['app', 'server'], ['read'], ['model']],
  predict: [['.'], ['node', 'rendering'], ['image'], ['objects', 'cost']],
  view: [
    ['pool-view', 'node-view', 'build-view', 'slots', 'words'],
    ['holds', 'obstacles', 'time-left', 'retriable'],
    ['node-source'],
    ['observed-cluster'],
    ['named', 'conditions', 'schemas', 'pinned-images', 'policies'],
  ],
  rollout: [
    ['controllers', 'pinned-images'],
    ['act'],
    ['reports', 'rendering'],
    ['pools', 'gates', 'next-boot', 'fleet-lock', 'monitoring'],
    ['.'],
  ],
};

/** Rooms without floors: their files import one another without a circle, and that is all. */
const FLAT = [
  'oci',
  'api',
  'cluster',
  'disruption',
  'opt-in',
  'x509',
  'workshop/apiserver',
  'workshop/sandbox',
];

function productGraph(): ImportGraph {
  const rooms = [...Object.keys(floors), ...FLAT].filter((room) => existsSync(path.join(root, room)));
  return new Map([...readImportGraph(root, rooms)].filter(([file]) => !isTestFile(file)));
}

function linesOf(file: string): number {
  return readFileSync(path.join(root, file), 'utf8').split('\n').length - 1;
}

/** @returns one line a room: files, lines, the median and the largest file. */
function figures(graph: ImportGraph): string[] {
  return [...Object.keys(floors), ...FLAT].sort().map((room) => {
    const lines = [...graph.keys()].filter((file) => file.startsWith(`${room}/`)).map(linesOf);
    lines.sort((a, b) => a - b);
    const sum = lines.reduce((total, count) => total + count, 0);
    return `${room}: ${lines.length} files, ${sum} lines, median ${lines[lines.length >> 1] ?? 0}, largest ${lines.at(-1) ?? 0}, ${plural(floors[room]?.length ?? 1, 'floor')}`;
  });
}

function problems(graph: ImportGraph): string[] {
  const circles = findCircles(graph).map((circle) => `circle of files: ${circle.join(' <-> ')}`);
  const upward = Object.entries(floors).flatMap(([room, own]) =>
    upwardArrows(graph, room, own).map(
      ({ file, imported }) => `${file}: imports ${imported}, which is on a higher floor`,
    ),
  );
  const page = readFileSync(path.join(root, 'docs/architecture.md'), 'utf8');
  const features = featuresOf(page).flatMap((feature) => featureProblems(feature, graph));
  return [
    ...circles,
    ...upward,
    ...features,
    ...namesInSeveralFiles(),
    ...wideComments(graph),
    ...testsWithoutQuestion(),
  ];
}

/** A screen beside another, wider than code (biome.json), as prose is read and not scanned. */
const COMMENT_COLUMNS = 120;

function wideComments(graph: ImportGraph): string[] {
  const isWide = (line: string) => line.length > COMMENT_COLUMNS && /^ *(\/\/|\/?\*)/.test(line);
  return [...graph.keys()].flatMap((file) =>
    readFileSync(path.join(root, file), 'utf8')
      .split('\n')
      .flatMap((line, at) =>
        isWide(line)
          ? [`${file}:${at + 1}: a comment of ${line.length} columns; ${COMMENT_COLUMNS} at most`]
          : [],
      ),
  );
}

/**
 * Behaviour is tested where it is cheapest, and once more above only for what the level below can't show. The first line
 * of a test that takes processes, disks or machines says what that is.
 */
function testsWithoutQuestion(): string[] {
  const exclude = (name: string) => name === 'node_modules' || name.startsWith('.');
  return globSync('**/*.{integration,e2e,soak}.test.ts', { cwd: root, exclude })
    .sort()
    .flatMap((file) =>
      readFileSync(path.join(root, file), 'utf8').startsWith('/**')
        ? []
        : [`${file}: begins without a comment that says what only it can answer`],
    );
}

function namesInSeveralFiles(): string[] {
  const graph = readImportGraph(root, [...productRooms, 'charts', 'container', 'release']);
  const files = [...graph.keys()].filter((file) => !isTestFile(file));
  const sources = new Map(files.map((file) => [file, readFileSync(path.join(root, file), 'utf8')]));
  return sharedNames(sources).map(
    ({ name, files }) => `${name}: exported by ${files.join(' and ')}; one word for one thing`,
  );
}

const graph = productGraph();
if (process.argv.includes('--figures')) {
  process.stdout.write(`${figures(graph).join('\n')}\n`);
} else {
  const found = problems(graph);
  for (const problem of found) process.stderr.write(`${problem}\n`);
  process.stdout.write(`house: ${graph.size} files, ${plural(found.length, 'problem')}\n`);
  if (found.length > 0) process.exitCode = 1;
}
