"""Pictures: one file for each verb that draws, of panels that the page of `tailstep report` draws too."""
