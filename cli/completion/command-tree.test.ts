import { Command, Option } from 'commander';
import { expect, test } from 'vitest';
import { candidatesFor, commandTree, forKubectl } from './command-tree.ts';

const program = commandTree(
  new Command('shale')
    .addCommand(
      new Command('status')
        .description('how it is')
        .addOption(new Option('-o, --output <format>', 'output format').choices(['table', 'json']))
        .option('--kubeconfig <file>', 'the cluster')
        .option('--context <name>', 'its context'),
    )
    .addCommand(new Command('diff').description('what changes').argument('[config...]'))
    .addCommand(
      new Command('maintenance').addCommand(new Command('start')).addCommand(new Command('status')),
    ),
);

test.each<[string[], string[], boolean]>([
  [[''], ['status', 'diff', 'maintenance'], false],
  [['st'], ['status'], false],
  [['status', '--o'], ['--output'], false],
  [['status', '-'], ['-o', '--output', '--kubeconfig', '--context', '-h', '--help'], false],
  [['status', '-o', ''], ['table', 'json'], false],
  [['status', '--output', 'j'], ['json'], false],
  [['status', '--kubeconfig', ''], [], true],
  [['status', '--context', ''], [], false],
  [['diff', ''], [], true],
  [['maintenance', ''], ['start', 'status'], false],
  // A value, not the command of that name.
  [['maintenance', 'status', '-'], ['-h', '--help'], false],
  [['--help', 'st'], ['status'], false],
])('%j', (words, expected, files) => {
  const candidates = candidatesFor(program, words);
  expect({ words: candidates.words.map(({ word }) => word), files: candidates.files }).toEqual({
    words: expected,
    files,
  });
});

const named = commandTree(
  new Command('shale')
    .addCommand(new Command('history').argument('<pool>'))
    .addCommand(new Command('explain').argument('<node>').option('--pool <name...>', 'pools'))
    .addCommand(new Command('status').argument('[pool|node]'))
    .addCommand(new Command('try').addCommand(new Command('confirm').argument('[tried-pool...]'))),
);

test.each<[string[], string | undefined]>([
  [['history', ''], 'pools'],
  [['history', 'wo'], 'pools'],
  [['history', '-'], undefined],
  [['explain', ''], 'nodes'],
  [['explain', '--pool', ''], 'pools'],
  [['status', ''], 'pools-and-nodes'],
  [['try', ''], undefined],
  [['try', 'confirm', ''], 'tried-pools'],
  [['try', 'confirm', '99-a', ''], 'tried-pools'],
  [[''], undefined],
])('of %j the cluster knows %s', (words, names) => {
  expect(candidatesFor(named, words)).toMatchObject({ names, files: false });
});

test('the output for kubectl contains descriptions and the directive for files', () => {
  expect(forKubectl(candidatesFor(program, ['st']))).toBe('status\thow it is\n:4');
  expect(forKubectl(candidatesFor(program, ['status', '--kubeconfig', '']))).toBe(':0');
});
