import { backendContract } from '../../daemon/os/backend-contract.ts';
import { noDirectoryNodes } from '../../sandbox/node/testing.ts';
import { createToolNode } from './tool-node.ts';

if (noDirectoryNodes !== undefined) process.stderr.write(`skipped: ${noDirectoryNodes}\n`);
const skip = noDirectoryNodes !== undefined;

backendContract('bootc’s stand-in', { create: () => createToolNode('bootc'), skip });
backendContract('rpm-ostree’s stand-in', { create: () => createToolNode('rpm-ostree'), skip });
