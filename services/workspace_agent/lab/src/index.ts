/** GPU workspaces in JupyterLab: the banner, the status bar's item, saving before a stop, and running jobs. */

import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { IDocumentManager } from '@jupyterlab/docmanager';
import { IFileBrowserFactory } from '@jupyterlab/filebrowser';
import { IStatusBar } from '@jupyterlab/statusbar';

import { Agent } from './api.js';
import { Banner } from './banner.js';
import { Documents } from './documents.js';
import { addJobCommand, RUN_AS_JOB } from './jobs.js';
import { Session } from './session.js';
import { StatusItem } from './status.js';

const plugin: JupyterFrontEndPlugin<void> = {
  id: '@gpu-workspaces/session:plugin',
  description: 'Shows what happens to this server, saves before it stops, and runs files as jobs.',
  autoStart: true,
  requires: [IDocumentManager],
  optional: [IStatusBar, IFileBrowserFactory],
  activate: (
    app: JupyterFrontEnd,
    manager: IDocumentManager,
    statusBar: IStatusBar | null,
    files: IFileBrowserFactory | null,
  ) => {
    const agent = new Agent(app.serviceManager.serverSettings);
    const session = new Session(agent, new Documents(app.shell, manager));
    let offered = false;
    addJobCommand(app, agent, manager, files, () => offered);
    session.changed.connect(() => {
      if (session.seen && session.seen.view.handoff !== offered) {
        offered = session.seen.view.handoff;
        app.commands.notifyCommandChanged(RUN_AS_JOB);
      }
    });
    void app.restored
      .then(() => session.start(app.serviceManager.events))
      .then(there => {
        if (there) {
          show(app, session, statusBar);
        }
      })
      .catch(() => undefined); // a server that does not answer says so in other places
  },
};

function show(app: JupyterFrontEnd, session: Session, statusBar: IStatusBar | null): void {
  const banner = new Banner(session);
  app.shell.add(banner, 'header', { rank: 1 });
  const item = new StatusItem(session);
  statusBar?.registerStatusItem('gpu-workspaces:session', { item, align: 'right', rank: 1, priority: 1 });
  const render = () => {
    banner.render();
    item.render();
  };
  render();
  window.setInterval(render, 1_000);
}

export default plugin;
