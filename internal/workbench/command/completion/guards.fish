complete -c guards -f -a '(guards complete -- (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null)'
complete -c guards -F -n 'contains replay (commandline -opc)'
