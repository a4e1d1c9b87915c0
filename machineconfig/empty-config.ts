import type { NodeConfig } from './node-config.ts';

/** What a node has that no MachineConfig configures: every rendered config is a change of this one. */
export const emptyNodeConfig: NodeConfig = {
  name: '',
  files: new Map(),
  directories: new Map(),
  links: new Map(),
  units: new Map(),
  sshKeys: new Map(),
  passwordHashes: new Map(),
  kernelArguments: [],
  kernelType: 'default',
  extensions: [],
  fips: false,
  osImageURL: '',
  noReboot: new Set(),
};
