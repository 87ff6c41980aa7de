"""``ciphermill serve``: a page on this computer into which a cipher in C is pasted, to see what it costs on machines.

    limits.py   what a run may take, and how many there are at a time
    asked.py    what a page may ask for, checked
    desk.py     whose turn it is, and a run as a process of its own: started, read, ended
    child.py    that process: confined, it compiles and measures, by the code of `run` and `explain`
    told.py     a measurement and an explanation as the lines that the page shows
    server.py   the page, and who may ask for what
    page/       the page: HTML, style, script

Data goes from the server to the desk to the child, and comes back as lines of JSON. The child alone
compiles and measures; nothing that was pasted is read by the server as anything but text.
"""
